package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sandplan/sandplan/planner/permission"
)

// Permissions is the table of what each agent may do, with what is more than before marked.
func (r *Renderer) Permissions(reports []permission.Report) string {
	p := &page{r: r}
	for i, rep := range reports {
		if i > 0 {
			p.nl()
		}
		p.permissions(rep)
	}
	if n, of := widenings(reports); n > 0 {
		p.nl()
		p.line(boldAmber, "Wider: ", plural(n, "permission"), " of ", plural(of, "invocation"), ", marked with !.")
	}
	return p.String()
}

// allowed ends the list of changes with what they mean: of many invocations, those that may do more come
// first, and the rest is counted.
func (r *Renderer) allowed(p *page, reports []permission.Report) {
	if len(reports) == 0 {
		return
	}
	shown := slices.Clone(reports)
	slices.SortStableFunc(shown, func(a, b permission.Report) int { return weight(b) - weight(a) })
	if len(shown) > manyAlike {
		shown = shown[:manyAlike]
	}
	p.nl()
	p.line(plain, "Then these agents may do this:")
	p.nl()
	p.b.WriteString(r.Permissions(shown))
	if rest := len(reports) - len(shown); rest > 0 {
		p.nl()
		p.line(plain, "The permissions of ", plural(rest, "more invocation"), ": sandplan show -permissions")
	}
}

func weight(r permission.Report) int {
	if r.New {
		return 0
	}
	return len(r.Widened)
}

func widenings(reports []permission.Report) (n, invocations int) {
	for _, r := range reports {
		n += len(r.Widened)
		if len(r.Widened) > 0 {
			invocations++
		}
	}
	return n, invocations
}

// permissionColumn is where the right side of the table begins.
const permissionColumn = 19

// permissions prints one invocation. A line that is wider than before begins with an exclamation mark, and
// says below what was there and why it counts as more.
func (p *page) permissions(rep permission.Report) {
	title := ""
	if rep.Vendor != "" {
		title = fmt.Sprintf(" (vendor.%s, phase.%s)", rep.Vendor, rep.Phase)
	}
	p.put(bold, "  # ", string(rep.Invocation), title)
	if rep.New {
		p.put(boldAmber, " is new, and so is all of this")
	}
	p.nl()
	wider := map[string][]permission.Widening{}
	for _, w := range rep.Widened {
		name := permissionRow(w.What)
		wider[name] = append(wider[name], w)
	}
	for _, row := range permissionRows(rep.Set) {
		marked := wider[row.name]
		lead, st := "    ", plain
		if len(marked) > 0 {
			lead, st = "  ! ", boldAmber
		}
		for i, v := range row.values {
			name := row.name
			if i > 0 {
				name, lead = "", "    "
			}
			for j, l := range wrap(Clean(v), p.r.width()-permissionColumn) {
				if j > 0 {
					name, lead = "", "    "
				}
				p.put(st, lead)
				p.put(plain, fmt.Sprintf("%-*s", permissionColumn-4, name))
				p.line(plain, l)
			}
		}
		for _, w := range marked {
			for _, l := range wrap(wideningText(w), p.r.width()-permissionColumn-2) {
				p.line(boldAmber, strings.Repeat(" ", permissionColumn), "# ", l)
			}
		}
	}
}

// permissionRow is the row of the table in which a widening stands.
func permissionRow(what string) string {
	switch {
	case strings.HasPrefix(what, "limits."), what == "timeout":
		return "limits"
	case what == "command", what == "image", what == "files":
		return "agent"
	case what == "run":
		return "may have run"
	case what == "reach", what == "dns", what == "vendor":
		return "may reach"
	case what == "git":
		return "may read"
	case what == "phase":
		return "tools"
	case what == "read", what == "write":
		return "may " + what
	case what == "user":
		return "runs as"
	}
	return what
}

func wideningText(w permission.Widening) string {
	from, to := w.From, w.To
	switch w.What {
	case "limits.memory", "limits.output", "limits.upload", "limits.download":
		from, to = unit(w.From, bytesText), unit(w.To, bytesText)
	case "limits.cpus":
		from, to = unit(w.From, cpusText), unit(w.To, cpusText)
	case "timeout":
		from, to = unit(w.From, func(n int64) string { return duration(time.Duration(n)) }), unit(w.To, func(n int64) string { return duration(time.Duration(n)) })
	case "image":
		from, to = shortID(w.From), shortID(w.To)
	}
	if from == "" {
		return fmt.Sprintf("%s is new: %s", Clean(to), w.Because)
	}
	return fmt.Sprintf("%s %s -> %s: %s", w.What, Clean(from), Clean(to), w.Because)
}

func unit(text string, word func(int64) string) string {
	var n int64
	if _, err := fmt.Sscan(text, &n); err != nil {
		return text
	}
	return word(n)
}

func bytesText(n int64) string { return strings.Trim(inline(byteSize(n)), `"`) }

func cpusText(n int64) string { return fmt.Sprintf("%g", float64(n)/1e9) }

type permissionLine struct {
	name   string
	values []string
}

// permissionRows are the rows of the table, in the order in which a reviewer asks.
func permissionRows(s permission.Set) []permissionLine {
	list := func(vs []string, none string) []string {
		if len(vs) == 0 {
			return []string{none}
		}
		return vs
	}
	tools := "whatever its command does"
	if s.Tools != nil {
		tools = strings.Join(s.Tools, ", ")
	}
	prompt := "the declared one"
	if s.AnyPrompt {
		prompt = "whatever it is started with"
	}
	l := s.Limits
	rows := []permissionLine{
		{"may read", list(slices.Concat(s.Write, s.Read, s.Git), "nothing of the host")},
		{"may write", list(s.Write, "nothing of the host")},
		{"may reach", list(s.Reach, "nobody")},
		{"tools", []string{tools}},
		{"may have run", runnerTexts(s.Runners)},
		{"agent", append([]string{commandText(s.Command), "in " + shortID(s.Image)}, s.Files...)},
		{"prompt", []string{prompt}},
		{"runs as", []string{s.User}},
		{"credentials", list(s.Credentials, "none")},
		{"environment", list([]string{strings.Join(s.Env, ", ")}, "empty")},
		{"limits", []string{
			fmt.Sprintf("%s memory, %s CPUs, %d processes, %s output, %s", bytesText(l.Memory), cpusText(l.NanoCPUs), l.PIDs, bytesText(l.Output), duration(l.Timeout)),
			fmt.Sprintf("%s upload, %s, %d tunnels, %d new a second", bytesText(l.Upload), downloadText(l.Download), l.Tunnels, l.TunnelsPerSecond),
		}},
	}
	return rows
}

func downloadText(n int64) string {
	if n == permission.Unbounded {
		return "any download"
	}
	return bytesText(n) + " download"
}

func runnerTexts(runners []permission.Runner) []string {
	if len(runners) == 0 {
		return []string{"nothing"}
	}
	var out []string
	for _, r := range runners {
		out = append(out, fmt.Sprintf("%s: %s", r.Name, commandText(r.Argv)))
	}
	return out
}

// commandText is a command as one would type it.
func commandText(argv []string) string {
	var words []string
	for _, a := range argv {
		words = append(words, shellQuote(a))
	}
	return strings.Join(words, " ")
}
