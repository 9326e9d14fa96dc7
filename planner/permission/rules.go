package permission

import (
	"fmt"
	"slices"
	"strings"
)

// rule compares one property of two sets.
type rule struct {
	what string
	// because says why more of it is more.
	because string
	judge   func(base, now Set) []pair
}

// pair is one thing that is more than before.
type pair struct{ from, to string }

// rules are all properties that count, in the order in which people read them.
var rules = []rule{
	{"read", "it sees files that it did not see", added(func(s Set) []string { return append(slices.Clone(s.Read), s.Write...) })},
	{"write", "it changes files that it could only read, or not even see", added(func(s Set) []string { return s.Write })},
	{"git", "a history holds what was deleted from the files", added(func(s Set) []string { return s.Git })},
	{"reach", "it talks to somebody whom it could not reach", reach},
	{"dns", "another name server says where the hosts are", added(func(s Set) []string { return s.DNS })},
	{"engine", "another engine gets the prompt and the credentials, and what holds an agent there is its word", told(func(s Set) string { return s.Engine })},
	{"vendor", "somebody else gets all that it sees", told(func(s Set) string { return s.Vendor })},
	{"phase", "what its phase may allow at most is more", known(func(s Set) []string { return s.Ceiling })},
	{"tools", "it does what it had no tool for", known(func(s Set) []string { return s.Tools })},
	{"image", "what is inside another image is another set of programs", changed(func(s Set) string { return s.Image })},
	{"command", "the command line decides which tools the CLI gives to the model", command},
	{"files", "files beside the worktree can configure the CLI", added(func(s Set) []string { return s.Files })},
	{"run", "it can have a command run that it could not", runners},
	{"user", "another user owns other files", changed(func(s Set) string { return s.User })},
	{"environment", "a variable can switch on what was off", environment},
	{"credentials", "it can act as somebody as whom it could not", credentials},
	{"prompt", "whoever starts it tells it what to do", func(base, now Set) []pair {
		if now.AnyPrompt && !base.AnyPrompt {
			return []pair{{"the declared one", "any"}}
		}
		return nil
	}},
	{"limits.memory", moreOf, larger(func(l Limits) int64 { return l.Memory })},
	{"limits.cpus", moreOf, larger(func(l Limits) int64 { return l.NanoCPUs })},
	{"limits.pids", moreOf, larger(func(l Limits) int64 { return l.PIDs })},
	{"limits.output", "it can print more", larger(func(l Limits) int64 { return l.Output })},
	{"limits.upload", "it can carry more out", larger(func(l Limits) int64 { return l.Upload })},
	{"limits.download", "it can take more in", larger(func(l Limits) int64 { return l.Download })},
	{"limits.tunnels", "it can talk over more connections at once", larger(func(l Limits) int64 { return l.Tunnels })},
	{"limits.tunnels_per_second", "it can connect more often", larger(func(l Limits) int64 { return l.TunnelsPerSecond })},
	{"timeout", "it can work longer", larger(func(l Limits) int64 { return int64(l.Timeout) })},
}

const moreOf = "it can use more of the host"

// Widened is everything of now that is more than base, in the order of the rules.
func Widened(base, now Set) []Widening {
	var out []Widening
	for _, r := range rules {
		for _, p := range r.judge(base, now) {
			out = append(out, Widening{What: r.what, From: p.from, To: p.to, Because: r.because})
		}
	}
	return out
}

// added is for lists: every element more is more, and one less is not.
func added(of func(Set) []string) func(base, now Set) []pair {
	return func(base, now Set) []pair {
		var out []pair
		had := of(base)
		for _, v := range of(now) {
			if !slices.Contains(had, v) && !slices.Contains(out, pair{"", v}) {
				out = append(out, pair{"", v})
			}
		}
		return out
	}
}

// changed is for what has no more and no less: anything else may be more.
func changed(of func(Set) string) func(base, now Set) []pair {
	return func(base, now Set) []pair {
		if of(base) == of(now) {
			return nil
		}
		return []pair{{of(base), of(now)}}
	}
}

// known is for lists that not every source tells. Where one side lacks it, what the list stands for is still
// judged by the other rules: the command, the mounts, the hosts.
func known(of func(Set) []string) func(base, now Set) []pair {
	return func(base, now Set) []pair {
		if of(base) == nil || of(now) == nil {
			return nil
		}
		return added(of)(base, now)
	}
}

// told is changed for what not every source tells.
func told(of func(Set) string) func(base, now Set) []pair {
	return func(base, now Set) []pair {
		if of(base) == "" || of(now) == "" {
			return nil
		}
		return changed(of)(base, now)
	}
}

// environment: a variable that was there may have switched off what its new value switches on.
func environment(base, now Set) []pair {
	out := added(func(s Set) []string { return s.Env })(base, now)
	for _, name := range now.Env {
		from, had := base.Values[name]
		if to, has := now.Values[name]; had && has && from != to {
			out = append(out, pair{name + "=" + from, name + "=" + to})
		}
	}
	return out
}

// credentials: the secret from another place is another one, whatever the CLI is told that it is.
func credentials(base, now Set) []pair {
	out := added(func(s Set) []string { return s.Credentials })(base, now)
	for _, name := range now.Credentials {
		if from, to := base.Sources[name], now.Sources[name]; slices.Contains(base.Credentials, name) && from != to {
			out = append(out, pair{name + " from " + orUnknown(from), "from " + orUnknown(to)})
		}
	}
	return out
}

func orUnknown(source string) string {
	if source == "" {
		return "an unknown source"
	}
	return source
}

func larger(of func(Limits) int64) func(base, now Set) []pair {
	return func(base, now Set) []pair {
		from, to := of(base.Limits), of(now.Limits)
		if to <= from {
			return nil
		}
		return []pair{{bound(from), bound(to)}}
	}
}

func bound(n int64) string {
	if n == Unbounded {
		return "no bound"
	}
	return fmt.Sprint(n)
}

// command is for the agent's own command line. It is no more than before only when it is the same, or when
// nothing but a comma-separated list (of tools) became shorter.
func command(base, now Set) []pair {
	if narrower(base.Command, now.Command) {
		return nil
	}
	return []pair{{strings.Join(base.Command, " "), strings.Join(now.Command, " ")}}
}

func narrower(from, to []string) bool {
	if len(from) != len(to) {
		return false
	}
	for i, arg := range to {
		if arg == from[i] {
			continue
		}
		had := strings.Split(from[i], ",")
		for _, word := range strings.Split(arg, ",") {
			// An empty list may stand for "all of them".
			if word == "" || !slices.Contains(had, word) {
				return false
			}
		}
		if len(had) < 2 {
			return false
		}
	}
	return true
}

func runners(base, now Set) []pair {
	had := map[string]Runner{}
	for _, r := range base.Runners {
		had[r.Name] = r
	}
	var out []pair
	for _, r := range now.Runners {
		old, there := had[r.Name]
		text := func(r Runner) string { return fmt.Sprintf("%s: %s", r.Name, strings.Join(r.Argv, " ")) }
		switch {
		case !there:
			out = append(out, pair{"", text(r)})
		case !slices.Equal(old.Argv, r.Argv):
			out = append(out, pair{text(old), text(r)})
		case old.Image != r.Image:
			out = append(out, pair{r.Name + " in " + old.Image, r.Name + " in " + r.Image})
		case r.Timeout > old.Timeout:
			out = append(out, pair{r.Name + " for " + old.Timeout.String(), r.Name + " for " + r.Timeout.String()})
		}
	}
	return out
}
