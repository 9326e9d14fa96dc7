package sandplan_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedTestsExist: a page that names a test as proof must not outlive it.
func TestDocumentedTestsExist(t *testing.T) {
	exists := testNames(t)
	text, err := os.ReadFile("docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(text), -1)
	if len(names) == 0 {
		t.Error("docs/threat-model.md names no test at all")
	}
	for _, n := range names {
		if !exists[n[1]] {
			t.Errorf("docs/threat-model.md names %s, and there is no such test", n[1])
		}
	}
}

// testNames are the names of all tests of the tree.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	out, err := exec.Command("git", "grep", "--untracked", "-hoE", `^func Test\w+`, "--", "*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{}
	for _, line := range strings.Fields(strings.ReplaceAll(string(out), "func ", "")) {
		exists[line] = true
	}
	return exists
}
