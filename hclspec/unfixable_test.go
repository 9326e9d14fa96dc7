package hclspec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
)

// unfixable shows the diagnostics that no fixture can: their source is too long for one, or is a plan
// file that somebody has edited.
func unfixable(t *testing.T) []string {
	return []string{damagedSpec(t), tooMany(t)}
}

func damagedSpec(t *testing.T) string {
	spec, _ := loadFiles(t, map[string]string{"sandplan.hcl": "sandplan {\n project = \"x\"\n}\nlocals {\n a = 1\n}\noutput \"a\" {\n value = local.a\n}\n"}, Vars{})
	v := spec.Scope.Values["local.a"]
	v.Type = []byte(`"strin"`)
	spec.Scope.Values["local.a"] = v
	_, diags := spec.EvalOutputs(nil)
	return only(t, diags)
}

func only(t *testing.T, diags hcl.Diagnostics) string {
	t.Helper()
	if len(diags) != 1 || diags[0].Subject == nil {
		t.Fatalf("want one diagnostic with a range, got %v", diags)
	}
	return diags[0].Summary
}

func tooMany(t *testing.T) string {
	var b strings.Builder
	b.WriteString("sandplan {\n project = \"x\"\n}\nlocals {\n")
	for i := range 1000 {
		fmt.Fprintf(&b, " a%d = local.nothing%d\n", i, i)
	}
	b.WriteString("}\n")
	_, diags := loadFiles(t, map[string]string{"sandplan.hcl": b.String()}, Vars{})
	if len(diags) > 210 {
		t.Errorf("%d diagnostics are more than anybody reads", len(diags))
	}
	return diags[len(diags)-1].Summary
}
