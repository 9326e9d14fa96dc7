package reason

import (
	"regexp"
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
	if Reason("other").Text() != "other" {
		t.Error("a reason without a text must still name itself")
	}
}
