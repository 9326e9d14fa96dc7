package policy

import (
	"strings"
	"testing"
)

// TestBuildersRefuseWhatIsNotTheirs: each makes a command line of its own vendor's decisions alone.
func TestBuildersRefuseWhatIsNotTheirs(t *testing.T) {
	for _, kind := range builtinKinds() {
		p, _ := profileOf(kind)
		for _, of := range append(builtinKinds(), KindCustom, KindProbe, "runner", "") {
			b, err := p.build(agent{kind: of, tools: []string{ToolRead}, version: p.versions[0]})
			switch {
			case of == kind && (err != nil || len(b.argv) == 0):
				t.Errorf("%s refuses its own: %v", kind, err)
			case of != kind && (err == nil || !strings.Contains(err.Error(), "asked for what was decided for") || len(b.argv)+len(b.env)+len(b.files) > 0):
				t.Errorf("%s makes a command line of what was decided for %q: %v, %v", kind, of, b.argv, err)
			}
		}
	}
}

func TestCheckPrompt(t *testing.T) {
	for _, c := range []struct{ reason, text, fails string }{
		{"a task", "Look at the last commit.\n", ""},
		{"what a CLI might take for more than text is text behind the preamble", "/compact\n!ls\n@/etc/passwd\n#memory", ""},
		{"line ends of another system", "a\r\nb\r\n", ""},
		{"a mark of the byte order", "\ufeff/compact", ""},
		{"as large as it may be", strings.Repeat("x", MaxPrompt), ""},
		{"one byte more", strings.Repeat("x", MaxPrompt+1), "more than 1048576 bytes"},
		{"ten times as large", strings.Repeat("x", 10<<20), "more than 1048576 bytes"},
		{"a NUL", "a\x00b", "NUL"},
		{"no UTF-8", "caf\xe9", "not UTF-8"},
		{"half a letter at its end", "caf\xc3", "not UTF-8"},
		{"another encoding", "\xff\xfeh\x00i\x00", "not UTF-8"},
	} {
		err := CheckPrompt(c.text)
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %v, want %q in it", c.reason, err, c.fails)
		}
	}
}
