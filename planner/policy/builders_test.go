package policy

import (
	"slices"
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

// TestSmallestDifferenceOfARunner: no two of these commands may pass for each other.
func TestSmallestDifferenceOfARunner(t *testing.T) {
	seen := map[string][]string{}
	for _, argv := range [][]string{
		{"npm", "test", "--", "--run"}, {"npm", "test", "--", "--run", ""}, {"npm", "test", "--", "--run "}, {"npm", "test", "--", " --run"}, {"npm", "test", "-- --run"},
		{"npm", "test", "--run", "--"}, {"npm", "test", "--", "--Run"}, {"npm", "test", "--", "--run\n"}, {"npm", "test", "--", "--run\r"}, {"npm", "test", "--", "--run\t"},
		{"npm", "test", "--", "--run\u00a0"}, {"npm", "test", "--", "--run\u200b"}, {"npm", "test", "--", "--r\u0075\u0308n"}, {"npm", "test", "--", "--r\u00fcn"},
		{"npm", "test", "--", "--rцn"}, {"npm", "test", "--", "‐-run"}, {"npm", "test", "--", "--run\ufeff"}, {"npm", "test", "--", `--run\u0000`}, {"npm", "test", "--", "<run>"},
		{"npm", "test", "--", `\u003crun\u003e`}, {"npm", "test", "--"}, {"npm", "test"}, {"npm"}, {"./npm", "test"}, {"/usr/bin/npm", "test"}, {"npm", "te", "st"}, {"npm", "\"test\""},
		{"npm", "$(test)"}, {"npm", "`test`"}, {"npm", "test;"}, {"npm", "*"}, {"npm", "null"}, {"npm", "1"}, {"npm", "1.0"}, {"npm", "[\"test\"]"}, {"npm", "test\",\"x"}, {"npm", "test", "x"},
	} {
		s := fullSpec()
		phaseOf(s, "fix").Runners[0].Argv = set(argv, 61)
		c, err := SealRunner(s, "invocation.local_fix", "test")
		if err != nil {
			t.Errorf("%q: %v", argv, err)
			continue
		}
		if got := c.Argv(); !slices.Equal(got, argv) {
			t.Errorf("%q becomes %q", argv, got)
		}
		if other, taken := seen[c.Digest()]; taken {
			t.Errorf("%q passes for %q", argv, other)
		}
		seen[c.Digest()] = argv
	}
}
