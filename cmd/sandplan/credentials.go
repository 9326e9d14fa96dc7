package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/hclspec"
	"github.com/sandplan/sandplan/planner/policy"
)

// maxSecretFile bounds a credential's file: a wrong path must not be read whole.
const maxSecretFile = 1 << 20

// secrets reads the secrets of a command's vendor, and tells what can be known of them before anything
// starts. They go to the container's standard input and nowhere else.
func (a *app) secrets(u *ui, spec *hclspec.Spec, command policy.Command) (map[string][]byte, error) {
	out := map[string][]byte{}
	var diags hcl.Diagnostics
	ways := map[string]policy.Credential{}
	for _, c := range command.Credentials() {
		ways[c.Name] = c
	}
	for _, v := range spec.Vendors {
		if v.Name != command.Vendor() {
			continue
		}
		for _, c := range v.Credentials {
			secret, warnings, err := a.secret(c)
			if err != nil {
				return nil, fmt.Errorf("credential %q of vendor %q: %w", c.Name, v.Name, err)
			}
			more, err := ways[c.Name].Advise(secret, a.now())
			if err != nil {
				return nil, fmt.Errorf("vendor %q: %w", v.Name, err)
			}
			// One diagnostic: several warnings of one summary are shown as the first of them and a number.
			if warnings = append(warnings, more...); len(warnings) > 0 {
				diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "Credential", Subject: c.Range.Ptr(),
					Detail: fmt.Sprintf("credential %q of vendor %q: %s.", c.Name, v.Name, strings.Join(warnings, ". Also, "))})
			}
			out[c.Name] = secret
		}
	}
	u.report(diags)
	return out, nil
}

// secret reads one secret from where its block says.
func (a *app) secret(c hclspec.Credential) (secret []byte, warnings []string, err error) {
	if c.SourceEnv.Set {
		value := a.getenv(c.SourceEnv.V)
		if value == "" {
			return nil, nil, fmt.Errorf("the environment variable %s is not set, or is empty", c.SourceEnv.V)
		}
		return []byte(value), nil, nil
	}
	file := c.SourceFile.V
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("there is no file %s", file)
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is no regular file", file)
	case info.Size() > maxSecretFile:
		return nil, nil, fmt.Errorf("%s has %d bytes, and no credential has more than %d", file, info.Size(), maxSecretFile)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		warnings = append(warnings, fmt.Sprintf("%s can be read by others (mode %04o); `chmod 600 %[1]s` keeps it to you", file, mode))
	}
	secret, err = readLimited(file, maxSecretFile)
	return secret, warnings, err
}
