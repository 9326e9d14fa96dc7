package main

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/audit"
	"github.com/sandplan/sandplan/cmd/sandplan/internal/render/markdown"
	"github.com/sandplan/sandplan/drift"
	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner"
)

// The formats of reports. Text is for a terminal, the others for programs and for pull requests.
const (
	formatText     = "text"
	formatJSON     = "json"
	formatSARIF    = "sarif"
	formatJUnit    = "junit"
	formatMarkdown = "markdown"
)

// reportFlag is -format of a command that has these formats.
func reportFlag(cmd *cobra.Command, into *string, formats ...string) {
	cmd.Flags().StringVar(into, "format", formatText, "the form of the report, a `name`: "+strings.Join(formats, ", "))
}

// checkFormat refuses a format that a command does not have. With one, stdout is the report and nothing else.
func (a *app) checkFormat(command, format string, formats ...string) error {
	switch {
	case !slices.Contains(formats, format):
		return misuse(command, "-format=%s is none of %s", format, strings.Join(formats, ", "))
	case format != formatText && a.global.json:
		return misuse(command, "-json is a stream of lines and -format=%s a report: they exclude each other", format)
	}
	return nil
}

// recorder remembers the errors that are shown, for a report that has to hold them as well.
type recorder struct {
	view
	told hcl.Diagnostics
}

func (r *recorder) Problems(errs, warnings hcl.Diagnostics) string {
	r.told = append(r.told, errs...)
	return r.view.Problems(errs, warnings)
}

func (r *recorder) Diagnostics(diags hcl.Diagnostics) string {
	r.told = append(r.told, diags...)
	return r.view.Diagnostics(diags)
}

// driftReport prints an audit in the format that was asked for.
func (a *app) driftReport(u *ui, format string, au audit.Audit) int {
	var text string
	var err error
	switch format {
	case formatJSON:
		text = audit.JSON(au)
	case formatSARIF:
		text, err = audit.SARIF(au)
	case formatJUnit:
		text, err = audit.JUnit(au)
	case formatMarkdown:
		text = markdown.Drift(au)
	}
	if err != nil {
		u.fail(err)
		return exitError
	}
	u.print(text)
	return au.Code
}

// newAudit is what an audit found, for the reports.
func (a *app) newAudit(found audited, report drift.Report, errs hcl.Diagnostics, code int) audit.Audit {
	au := audit.Audit{Version: a.version, Scope: found.plan.Scope, EngineID: found.plan.EngineID, Recorded: found.spec == nil,
		Findings: report.Findings, Ignored: len(report.Ignored), Warnings: found.plan.Warnings, Errors: errs, Code: code, Taken: found.taken,
		URI: func(name string) string { return name }}
	if found.spec != nil {
		au.Sources, au.URI, au.Block = found.spec.Sources, a.uriOf(found.spec), found.spec.Range
	}
	for _, f := range report.Findings {
		if f.Unreadable() {
			au.Errors = append(au.Errors, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Could not look at " + string(f.Addr), Detail: fullSentence(f.Extra.Detail)})
		}
	}
	for _, c := range found.plan.Changes {
		if c.Object.ID != "" {
			au.Objects = append(au.Objects, audit.Object{Addr: c.Addr, Kind: c.Kind, Title: c.Title})
		}
	}
	return au
}

// failedAudit is one of which nothing is known but why.
func (a *app) failedAudit(errs hcl.Diagnostics) audit.Audit {
	project := "unknown"
	if head, diags := hclspec.ReadHead(a.source()); !diags.HasErrors() && head.Project.V != "" {
		project = head.Project.V
	}
	return audit.Audit{Version: a.version, Scope: planner.Scope{Project: project, Workspace: a.workspace()}, Errors: errs, Code: exitError,
		URI: func(name string) string { return name }}
}

// uriOf names the files of a configuration relative to the root of the repository, as code scanning does.
func (a *app) uriOf(spec *hclspec.Spec) func(string) string {
	root := repositoryOf(spec.Dir)
	return func(name string) string {
		path, known := spec.Paths[name]
		if !known {
			path = filepath.Join(a.cwd, name)
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			rel = name
		}
		parts := strings.Split(filepath.ToSlash(rel), "/")
		for i := range parts {
			parts[i] = url.PathEscape(parts[i])
		}
		return strings.Join(parts, "/")
	}
}

// repositoryOf is the root of the repository that a directory lies in, or the directory itself.
func repositoryOf(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}
