package sandplan_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedTestsExist: a page that names a test as proof must not outlive it, and what is said to be
// impossible for an attacker is said with its test.
func TestDocumentedTestsExist(t *testing.T) {
	exists := testNames(t)
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]int{}
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1) {
			named[page]++
			if !exists[name] {
				t.Errorf("%s names %s, and there is no such test", page, name)
			}
		}
	}
	for _, page := range []string{"docs/threat-model.md", "docs/boundary.md", "docs/attacks.md"} {
		if named[page] == 0 {
			t.Errorf("%s names no test at all", page)
		}
	}
}

// TestAttacksNameTheirTests: every attempt of the page of attacks is a test, apart from the open ones.
func TestAttacksNameTheirTests(t *testing.T) {
	text, err := os.ReadFile("docs/attacks.md")
	if err != nil {
		t.Fatal(err)
	}
	attempts, open := 0, false
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			open = heading == "Open\n"
		}
		if open || !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| attempt | ") {
			continue
		}
		attempts++
		cells := strings.Split(strings.TrimSuffix(line, " |\n"), " | ")
		if shown := cells[len(cells)-1]; !strings.Contains(shown, "Test") && !strings.Contains(shown, "`verify` ") {
			t.Errorf("no test is named: %s", line)
		}
	}
	if attempts < 150 {
		t.Errorf("%d attempts: the page is read wrongly", attempts)
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
