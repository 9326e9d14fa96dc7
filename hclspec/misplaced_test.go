package hclspec

import (
	"strings"
	"testing"
)

// TestMisplaced: a name that stands where it may not says where it may, and one that people know from
// Terraform what is there instead.
func TestMisplaced(t *testing.T) {
	const head = "sandplan {\n  project = \"p\"\n}\n"
	for _, tt := range []struct{ src, says, reason string }{
		{head + "runner \"test\" {\n}\n", "It belongs in a phase block.", "a block one level too high"},
		{head + "host \"a.example\" {\n}\n", "It belongs in a vendor block.", "a block one level too high"},
		{head + "invocation \"a\" {\n  model = \"x\"\n}\n", "It belongs in a vendor block.", "an argument of another block"},
		{head + "invocation \"a\" {\n  image = \"x\"\n}\n", "It belongs in a runner or a vendor block.", "an argument of two other blocks"},
		{"sandplan {\n  project = \"p\"\n\nvendor \"a\" {\n}\n", "It stands outside of all other blocks.", "a brace is missing above it"},
		{head + "terraform {\n}\n", "sandplan block", "a block of Terraform"},
		{head + "module \"a\" {\n}\n", "There are no modules", "a block of Terraform"},
		{head + "invocation \"a\" {\n  depends_on = []\n}\n", "Nothing waits", "an argument of Terraform"},
		{head + "invocation \"a\" {\n  lifecycle {\n  }\n}\n", "made anew", "a block of Terraform within one"},
		{head + "invocation \"a\" {\n  memory = \"1GiB\"\n}\n", "It belongs in a limits block.", "a level too high"},
	} {
		_, diags := loadFiles(t, map[string]string{"sandplan.hcl": tt.src}, Vars{})
		if text := details(diags); !strings.Contains(text, "not expected here. ") || !strings.Contains(text, tt.says) {
			t.Errorf("%s: %s\nwant %q", tt.reason, text, tt.says)
		}
	}
	_, diags := loadFiles(t, map[string]string{"sandplan.hcl": head + "whatever \"a\" {\n}\ninvocatoin \"b\" {\n}\n"}, Vars{})
	if text := details(diags); !strings.Contains(text, "\"whatever\" are not expected here.\n") || strings.Count(text, "Did you mean") != 1 {
		t.Errorf("a name that is nowhere has no home, and a near one is enough of a hint: %s", text)
	}
}
