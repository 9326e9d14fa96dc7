package reason

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

func TestEveryReasonSaysSomething(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)*$`)
	for _, r := range All() {
		if !name.MatchString(string(r)) {
			t.Errorf("%q is no name for logs", r)
		}
		if len(r.Text()) < 10 || r.Text() == string(r) {
			t.Errorf("%s says %q", r, r.Text())
		}
	}
	src, err := os.ReadFile("reason.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`Reason *= "([a-z0-9_]+)"`).FindAllStringSubmatch(string(src), -1) {
		if !slices.Contains(All(), Reason(m[1])) {
			t.Errorf("%s has no text", m[1])
		}
	}
	if Reason("other").Text() != "other" {
		t.Error("a reason without a text must still name itself")
	}
}
