// Package sandplan_test holds the tests that are about the tree as a whole.
package sandplan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sandplan/sandplan/"

// mayImport is the direction of imports: which packages of ours each one may use. A key covers the
// packages below it unless they have a key of their own.
var mayImport = map[string][]string{
	"planner":        {},
	"hclspec":        {},
	"planner/policy": {"hclspec"},
	// What two declarations let an agent do, held against each other.
	"planner/permission": {"planner"},
	"drift":              {"planner"},
	"applier":            {"planner"},
	// The frames of the stdin protocol, the reasons in a proxy's log and the judgement of a ready line are pure: launch
	// speaks the first, reads the second and makes the third, and no Docker comes with them.
	"applier/launch": {"applier", "drift", "planner", "planner/policy", "hclspec", "providers/docker/shim/wire", "providers/docker/shim/inside", "providers/docker/egress/reason"},
	// What a probe inside says is read outside; the program that says it is no part of verify.
	"applier/verify": {"applier/launch", "planner", "planner/policy", "hclspec", "providers/docker/probe"},
	// It runs where an agent does: nothing of ours comes with it.
	"providers/docker/probe":      {},
	"providers/docker":            {"planner", "planner/policy", "planner/permission", "hclspec", "providers/docker"},
	"providers/docker/egress":     {"providers/docker/egress", "providers/docker/shim/wire", "providers/docker/shim/inside"},
	"providers/docker/shim":       {"providers/docker/shim"},
	"providers/docker/dockertest": {"planner", "providers/docker"},
	"cmd":                         nil, // everything
	"testfixtures":                {"testfixtures"},
	// It measures the proxy itself, beside others.
	"testfixtures/benchproxy": {"testfixtures", "providers/docker/egress", "providers/docker/shim/wire"},
}

// onlyIn are libraries that one part of the tree keeps to itself.
var onlyIn = map[string]string{
	"github.com/docker/docker": "providers/docker",
	"github.com/spf13/cobra":   "cmd",
}

type listedPackage struct {
	ImportPath string
	Imports    []string
}

// TestImportDirection holds every package to the map in CONTRIBUTING.md, tests apart: they may set up
// what they need.
func TestImportDirection(t *testing.T) {
	for _, p := range listPackages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if name == strings.TrimSuffix(module, "/") {
			continue // this package
		}
		rule, ok := ruleFor(name)
		if !ok {
			t.Errorf("%s is not on the map of packages: say in mayImport what it may import", name)
			continue
		}
		for _, imported := range p.Imports {
			if ours, ok := strings.CutPrefix(imported, module); ok {
				if allowed := mayImport[rule]; allowed != nil && !covers(allowed, ours) {
					t.Errorf("%s imports %s; %s may import %q of ours", name, ours, rule, allowed)
				}
			}
			for library, home := range onlyIn {
				if below(imported, library) && !below(name, home) {
					t.Errorf("%s imports %s, which only %s may", name, imported, home)
				}
			}
		}
	}
}

// TestOnlyCommandsPrint keeps printing and exiting out of the libraries: the standard streams and
// os.Exit belong to cmd, and to the programs that tests use.
func TestOnlyCommandsPrint(t *testing.T) {
	out, err := exec.Command("git", "grep", "-nE", `\bos\.(Exit|Stdout|Stderr|Stdin)\b|\bfmt\.Print(ln|f)?\(|\blog\.(Print|Fatal|Panic)`,
		"--", "*.go", ":!*_test.go", ":!cmd/", ":!testfixtures/", ":!*/testdata/*").Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return // git grep found nothing
	}
	if err != nil {
		t.Fatalf("git grep: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		// A line that does what only cmd may do needs a reason on the same line.
		if !strings.Contains(line, "// architecture:") {
			t.Errorf("only cmd prints or exits: %s", strings.TrimSpace(line))
		}
	}
}

func listPackages(t *testing.T) []listedPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []listedPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list printed something else than JSON: %v", err)
		}
		packages = append(packages, p)
	}
	if len(packages) < 10 {
		t.Fatalf("go list named %d packages; this test looks at the whole tree", len(packages))
	}
	return packages
}

// ruleFor is the longest key of mayImport that covers the package.
func ruleFor(name string) (string, bool) {
	best, found := "", false
	for key := range mayImport {
		if below(name, key) && len(key) >= len(best) {
			best, found = key, true
		}
	}
	return best, found
}

func covers(allowed []string, name string) bool {
	// A package that has a rule of its own is not covered by an entry for its parent, but for
	// providers/docker, whose parts belong together.
	return slices.ContainsFunc(allowed, func(a string) bool {
		return name == a || strings.HasPrefix(a, "providers/docker") && below(name, a) || a == "testfixtures" && below(name, a)
	})
}

func below(name, parent string) bool { return name == parent || strings.HasPrefix(name, parent+"/") }
