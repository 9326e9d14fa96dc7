package proof

import (
	"github.com/sandplan/sandplan/applier/launch"
	"github.com/sandplan/sandplan/applier/verify"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/machine"
)

type document struct {
	FormatVersion string    `json:"format_version"`
	Version       string    `json:"sandplan_version"`
	Project       string    `json:"project"`
	Workspace     string    `json:"workspace"`
	EngineVersion string    `json:"engine_version"`
	ExitCode      int       `json:"exit_code"`
	Seconds       float64   `json:"seconds"`
	Subjects      []subject `json:"subjects"`
	// Failure is why nothing was verified, Unsettled what could not be removed.
	Failure   string `json:"failure,omitempty"`
	Unsettled string `json:"unsettled,omitempty"`
}

type subject struct {
	Address  string    `json:"address"`
	Seconds  float64   `json:"seconds"`
	Counts   counts    `json:"counts"`
	Attempts []attempt `json:"attempts"`
	Failure  string    `json:"failure,omitempty"`
}

type counts struct {
	Held     int `json:"held"`
	Escaped  int `json:"escaped"`
	Unproven int `json:"unproven"`
	Moot     int `json:"moot"`
}

type attempt struct {
	ID      string `json:"id"`
	What    string `json:"what"`
	Where   string `json:"observed_at"`
	Control string `json:"control"`
	Source  string `json:"source"`
	Status  string `json:"status"`
	Detail  string `json:"detail"`
	Proof   string `json:"control_detail"`
}

// JSON is the document of verify -format=json.
func JSON(version string, r verify.Report) string {
	d := document{FormatVersion: machine.FormatVersion, Version: version, Project: r.Scope.Project, Workspace: r.Scope.Workspace,
		EngineVersion: r.Engine, ExitCode: r.Code(), Seconds: r.Took.Seconds(), Subjects: []subject{}, Failure: failure(r.Decision)}
	if r.Unsettled != nil {
		d.Unsettled = r.Unsettled.Error()
	}
	for _, s := range r.Subjects {
		d.Subjects = append(d.Subjects, newSubject(s))
	}
	return machine.Document(d)
}

func newSubject(s verify.Subject) subject {
	out := subject{Address: string(s.Addr), Seconds: s.Took.Seconds(), Attempts: []attempt{}, Failure: failure(s.Decision),
		Counts: counts{s.Count(verify.Held), s.Count(verify.Escaped), s.Count(verify.Unproven), s.Count(verify.Moot)}}
	for _, f := range s.Findings {
		out.Attempts = append(out.Attempts, attempt{ID: f.ID, What: f.What, Where: string(f.Where), Control: string(f.Control), Source: f.Source,
			Status: string(f.Status), Detail: f.Detail, Proof: f.Proof})
	}
	return out
}

func failure(d *launch.Decision) string {
	if d == nil {
		return ""
	}
	return d.Error()
}
