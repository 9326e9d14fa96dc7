package machine

import (
	"github.com/sandplan/sandplan/planner/permission"
)

// Permission is what one invocation lets its agent do.
type Permission struct {
	Invocation  string         `json:"invocation"`
	Vendor      string         `json:"vendor,omitempty"`
	Phase       string         `json:"phase,omitempty"`
	Image       string         `json:"image,omitempty"`
	User        string         `json:"user,omitempty"`
	Read        []string       `json:"read"`
	Write       []string       `json:"write"`
	Reach       []string       `json:"reach"`
	Command     []string       `json:"command"`
	Run         []permitted    `json:"run"`
	Tools       []string       `json:"tools"`
	AnyPrompt   bool           `json:"any_prompt"`
	Environment []string       `json:"environment"`
	Credentials []string       `json:"credentials"`
	Limits      map[string]any `json:"limits"`
	// Compared says whether there was anything to hold it against; without, all of it is new.
	Compared bool       `json:"compared"`
	Widened  []widening `json:"widened"`
}

type permitted struct {
	Name  string   `json:"name"`
	Argv  []string `json:"argv"`
	Image string   `json:"image,omitempty"`
}

type widening struct {
	What    string `json:"what"`
	From    string `json:"from"`
	To      string `json:"to"`
	Because string `json:"because"`
}

func newPermission(r permission.Report) Permission {
	p := Permission{
		Invocation: string(r.Invocation), Vendor: r.Vendor, Phase: r.Phase, Image: r.Image, User: r.User,
		Read: all(r.Read), Write: all(r.Write), Reach: all(r.Reach), Command: all(r.Command), Tools: r.Tools, AnyPrompt: r.AnyPrompt,
		Environment: all(r.Env), Credentials: all(r.Credentials), Run: []permitted{}, Widened: []widening{}, Compared: !r.New,
		Limits: map[string]any{
			"memory_bytes": r.Limits.Memory, "nano_cpus": r.Limits.NanoCPUs, "pids": r.Limits.PIDs, "output_bytes": r.Limits.Output,
			"upload_bytes": r.Limits.Upload, "download_bytes": orNull(r.Limits.Download), "tunnels": r.Limits.Tunnels,
			"tunnels_per_second": r.Limits.TunnelsPerSecond, "timeout_seconds": r.Limits.Timeout.Seconds(),
		},
	}
	for _, run := range r.Runners {
		p.Run = append(p.Run, permitted{Name: run.Name, Argv: all(run.Argv), Image: run.Image})
	}
	for _, w := range r.Widened {
		p.Widened = append(p.Widened, widening(w))
	}
	return p
}

// orNull is a bound, or null where there is none.
func orNull(n int64) any {
	if n == permission.Unbounded {
		return nil
	}
	return n
}

// all is never null: a list that is empty says so.
func all(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// NewPermissions are the permissions of all invocations.
func NewPermissions(reports []permission.Report) []Permission {
	out := []Permission{}
	for _, r := range reports {
		out = append(out, newPermission(r))
	}
	return out
}

// Permissions is one line per invocation.
func (s *Stream) Permissions(reports []permission.Report) string {
	text := ""
	for _, r := range reports {
		message := string(r.Invocation) + ": nothing is wider than before"
		switch {
		case r.New:
			message = string(r.Invocation) + ": all of it is new"
		case len(r.Widened) > 0:
			message = string(r.Invocation) + ": " + r.Widened[0].What + " is wider than before"
		}
		text += s.line(levelInfo, "permission", message, map[string]any{"permission": newPermission(r)})
	}
	return text
}
