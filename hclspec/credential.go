package hclspec

import (
	"errors"
	"regexp"
	"sort"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

var credentialShape = &shape{label: "name", optional: []string{"source_env", "source_file"}}

// credentialPattern is what a credential may be called: it is a file's name in the sandbox.
var credentialPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// sourceEnv is the name of a variable of sandplan's own environment.
var sourceEnv = format[string]{summary: InvalidEnvName, want: cty.String, secret: true, parse: func(v cty.Value) (string, error) {
	s := v.AsString()
	if !envPattern.MatchString(s) {
		// It is not quoted: it may be the secret.
		return "", errors.New("this is not the name of an environment variable; the secret itself must not be written here")
	}
	return s, nil
}}

// decodeCredentials reads the credential blocks of a vendor. known are the names that its kind of CLI
// reads; nil means any.
func decodeCredentials(r *reader, known []string) []Credential {
	file := path(r.ev.dir)
	file.secret = true
	sections, diags := unique(r.inner("credential"), "credential")
	r.diags = append(r.diags, diags...)
	var out []Credential
	for _, s := range sections {
		cr := r.inside(s)
		cr.diags = append(cr.diags, checkCredentialName(s, known)...)
		c := Credential{
			Name:       s.name,
			SourceEnv:  read(cr, "source_env", sourceEnv, ""),
			SourceFile: read(cr, "source_file", file, ""),
			Range:      s.block.DefRange,
		}
		// Attributes that are null count as left out, as everywhere.
		given := func(v Val[string]) bool { return v.Set || v.Unknown }
		switch env, file := given(c.SourceEnv), given(c.SourceFile); {
		case env && file && c.SourceEnv.Set && c.SourceFile.Set:
			cr.diags = append(cr.diags, problem(CredentialSource, c.SourceFile.Range, "A credential has one source, and this one has source_env and source_file. Keep one of them."))
		case !env && !file:
			cr.diags = append(cr.diags, problem(CredentialSource, c.Range, "A credential needs source_env, the name of an environment variable of sandplan, or source_file, the path of a file."))
		}
		r.diags = append(r.diags, cr.diags...)
		out = append(out, c)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

func checkCredentialName(s *section, known []string) hcl.Diagnostics {
	at := s.block.LabelRanges[0]
	switch {
	case known != nil && !contains(known, s.name):
		return fail(UnknownCredential, at, "The CLI of this vendor does not read %q. It reads %s.%s", clip(s.name), orList(known), suggest(s.name, known))
	case !credentialPattern.MatchString(s.name):
		return fail(InvalidName, at, "%q cannot name a credential: it becomes a file's name, so letters, digits, _, - and, not first, dots; 64 at most.", clip(s.name))
	}
	return nil
}
