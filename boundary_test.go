package sandplan_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestBoundaryIsDocumented: every rule of the boundary names a test that shows it, and that exists.
func TestBoundaryIsDocumented(t *testing.T) {
	exists := testNames(t)
	attempts, err := os.ReadFile("providers/docker/probe/attempts.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("docs/boundary.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if len(cells) < 3 || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| id ") || strings.HasPrefix(line, "| report ") {
			continue
		}
		name, shown := strings.TrimPrefix(cells[0], "| "), cells[len(cells)-1]
		rules[name] = shown
		tests := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(shown, -1)
		if len(tests) == 0 {
			t.Errorf("%s is shown by no test", name)
		}
		for _, n := range tests {
			if !exists[n[1]] {
				t.Errorf("%s is shown by %s, and there is no such test", name, n[1])
			}
		}
		_, tried, _ := strings.Cut(shown, "`verify` ")
		for _, id := range strings.FieldsFunc(strings.TrimRight(tried, " |\n"), func(r rune) bool { return r == ',' || r == ' ' }) {
			if !strings.Contains(string(attempts), fmt.Sprintf("{ID: %q", id)) {
				t.Errorf("%s names %s, which verify does not try", name, id)
			}
		}
	}
	for i := 1; i <= 21; i++ {
		if rules[fmt.Sprintf("B%d", i)] == "" {
			t.Errorf("rule B%d is missing", i)
		}
	}
}
