package hclspec

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/hcl/v2"
)

// fuzzAllowance keeps one input short, so that many are tried.
const fuzzAllowance = 100_000

// seed adds every file of testdata and the examples whose name ends in a suffix.
func seed(f *testing.F, add func(text string), suffixes ...string) {
	for _, root := range []string{"testdata", "../examples"} {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() && d.Name() == "fuzz" {
				return filepath.SkipDir
			}
			for _, s := range suffixes {
				if strings.HasSuffix(path, s) {
					if text, err := os.ReadFile(path); err == nil {
						add(string(text))
					}
					break
				}
			}
			return nil
		})
		if err != nil {
			f.Fatal(err)
		}
	}
}

// fuzzLoad loads files and checks what holds for any input.
func fuzzLoad(t *testing.T, files map[string]string, vars Vars) (*Spec, hcl.Diagnostics) {
	spec, diags := load(Source{Path: "/conf", Cwd: "/conf", FS: memory(files)}, vars, testCatalog, newMeter(fuzzAllowance))
	if spec == nil {
		t.Fatal("there is no Spec")
	}
	checkForm(t, diags)
	for i, inv := range spec.Invocations {
		if !diags.HasErrors() && inv.Vendor.V == "" && !inv.Vendor.Unknown {
			t.Errorf("invocation %d has no vendor, and nobody said so", i)
		}
	}
	return spec, diags
}

func checkForm(t *testing.T, diags hcl.Diagnostics) {
	for _, d := range diags {
		if d.Subject == nil || d.Subject.Filename == "" || d.Summary == "" || d.Detail == "" {
			t.Errorf("a diagnostic without place or words: %#v", d)
		}
	}
}

func FuzzLoad(f *testing.F) {
	seed(f, func(text string) { f.Add(text, "a", false) }, ".hcl")
	seed(f, func(text string) { f.Add(text, "[1]", true) }, "team.hcl", "variables.hcl")
	f.Fuzz(func(t *testing.T, text, value string, unknown bool) {
		files := map[string]string{"sandplan.hcl": text, "t.tpl": value, "files/review.md": value}
		vars := Vars{Unknown: unknown, Ask: func(Variable) (string, bool) { return value, true }}
		spec, diags := fuzzLoad(t, files, vars)
		if _, more := ReadHead(Source{Path: "/conf", Cwd: "/", FS: memory(files)}); more != nil {
			checkForm(t, more)
		}
		if diags.HasErrors() || unknown {
			return
		}
		// What a plan file holds evaluates to the same.
		b, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		back := &Spec{FS: spec.FS}
		if err := json.Unmarshal(b, back); err != nil {
			t.Fatal(err)
		}
		now, d1 := spec.EvalOutputs(nil)
		then, d2 := back.EvalOutputs(nil)
		if diff := cmp.Diff(describe(d1), describe(d2)); diff != "" {
			t.Error(diff)
		}
		for name, o := range now {
			if !o.Value.RawEquals(then[name].Value) || o.Sensitive != then[name].Sensitive {
				t.Errorf("output %s is %#v, and from a plan file %#v", name, o, then[name])
			}
		}
		checkForm(t, spec.EvalChecks(nil))
	})
}

func FuzzVarFile(f *testing.F) {
	seed(f, func(text string) { f.Add(text, "number") }, ".spvars.hcl")
	f.Add(`v = { a = 1, b = [true, null] }`, "object({ a = string, b = optional(list(bool)) })")
	f.Add(`v = "${x}"`, "map(any)")
	f.Fuzz(func(t *testing.T, text, typ string) {
		files := map[string]string{
			"sandplan.hcl":        head + "variable \"v\" {\n  type = " + typ + "\n}\noutput \"v\" {\n  value = var.v\n}\n",
			"sandplan.spvars.hcl": text,
		}
		fuzzLoad(t, files, Vars{})
		fuzzLoad(t, files, Vars{Unknown: true, Args: []VarArg{{Assign: "v=" + text}}})
	})
}

func FuzzLockFile(f *testing.F) {
	seed(f, func(text string) { f.Add(text) }, ".lock.hcl")
	f.Add(string(FormatLock(someLock())))
	f.Fuzz(func(t *testing.T, text string) {
		lock, diags := parseLock([]byte(text), "lock")
		checkForm(t, diags)
		if diags.HasErrors() {
			return
		}
		again, diags := parseLock(FormatLock(lock), "lock")
		if len(diags) > 0 {
			t.Fatalf("what is written cannot be read: %s\n%s", details(diags), FormatLock(lock))
		}
		sortLists(&lock)
		ignore := []cmp.Option{cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(hcl.Range{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })}
		if diff := cmp.Diff(lock, again, ignore...); diff != "" {
			t.Error(diff)
		}
	})
}

func sortLists(l *Lock) {
	for i := range l.Images {
		img := &l.Images[i]
		img.IDs, img.Config.Volumes, img.Config.ExposedPorts = sorted(img.IDs), sorted(img.Config.Volumes), sorted(img.Config.ExposedPorts)
		if !img.Inspected {
			img.CLI, img.Shell = "", false
		}
	}
}
