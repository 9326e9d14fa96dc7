package topology

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func example(n int) Model {
	var invs []Invocation
	for i := range n {
		invs = append(invs, Invocation{Address: fmt.Sprintf("invocation.review[%d]", i), Vendor: "claude", Phase: "review", Tools: []string{"read"}, Worktree: fmt.Sprintf("/srv/%d", i)})
	}
	invs = append(invs, Invocation{Address: "invocation.fix", Vendor: "own", Phase: "fix", Worktree: "/srv/fix", Writable: true, Runners: []string{"test"}})
	return New("p/default", invs, []Vendor{{Name: "own", Hosts: []string{"b.example:8443"}}, {Name: "claude", Hosts: []string{"a.example:443"}}, {Name: "unused", Hosts: []string{"c.example:443"}}})
}

// TestManyInstances: many like instances are one box that says how many it stands for.
func TestManyInstances(t *testing.T) {
	if got := len(example(3).Invocations); got != 4 {
		t.Errorf("three instances and another one are %d boxes", got)
	}
	m := example(500)
	if len(m.Invocations) != 2 || len(m.Invocations[0].More) != 499 {
		t.Fatalf("500 instances are %d boxes", len(m.Invocations))
	}
	for name, text := range map[string]string{"SVG": m.SVG(), "DOT": m.DOT(), "Mermaid": m.Mermaid()} {
		if !strings.Contains(text, "and 499 more") {
			t.Errorf("%s does not say how many there are", name)
		}
	}
}

// TestEverythingIsDrawn: whatever an agent can reach stands in every format, and what nobody uses does not.
func TestEverythingIsDrawn(t *testing.T) {
	m := example(1)
	for name, text := range map[string]string{"SVG": m.SVG(), "DOT": m.DOT(), "Mermaid": m.Mermaid()} {
		for _, want := range []string{"p/default", "invocation.fix", "/srv/fix", "read and write", "read only", "a.example:443", "b.example:8443", "uplink", "phase.review", "test", "no network"} {
			if !strings.Contains(text, want) && !(name == "Mermaid" && want == "p/default") {
				t.Errorf("%s lacks %q", name, want)
			}
		}
		if strings.Contains(text, "c.example") {
			t.Errorf("%s shows a host that nobody reaches", name)
		}
	}
}

// TestArrowsAreSeen: boxes are drawn over lines, so that an arrow ends before the box that it leads to.
func TestArrowsAreSeen(t *testing.T) {
	heads := 0
	for _, m := range regexp.MustCompile(`<path d="M\d+ \d+ H\d+ C[^"]* (\d+) \d+" [^>]*marker-end`).FindAllStringSubmatch(example(2).SVG(), -1) {
		heads++
		if x, err := strconv.Atoi(m[1]); err != nil || x > hostX {
			t.Errorf("an arrow ends at %d, below the box that begins at %d and is drawn over it", x, hostX)
		}
	}
	if heads != 3 {
		t.Errorf("%d lines lead to vendors, want one of each agent", heads)
	}
}

// TestHostileNames: names come from repositories. None of them may leave its place in the picture.
func TestHostileNames(t *testing.T) {
	const evil = "\"]; x<script>alert(1)</script>\x1b[2J\n\\\"&#"
	m := New(evil, []Invocation{{Address: evil, Vendor: evil, Phase: evil, Tools: []string{evil}, Worktree: evil, Runners: []string{evil}}},
		[]Vendor{{Name: evil, Kind: evil, Hosts: []string{evil}}})
	svg := m.SVG()
	if strings.Contains(svg, "<script") || strings.ContainsRune(svg, 0x1b) {
		t.Errorf("markup or control characters got through:\n%s", svg)
	}
	elements := map[string]bool{}
	for dec := xml.NewDecoder(strings.NewReader(svg)); ; {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the SVG is not well-formed: %v", err)
		}
		if s, ok := tok.(xml.StartElement); ok {
			elements[s.Name.Local] = true
		}
	}
	for _, e := range []string{"svg", "rect", "text", "path"} {
		delete(elements, e)
	}
	for _, e := range []string{"title", "tspan", "defs", "marker"} {
		delete(elements, e)
	}
	if len(elements) > 0 {
		t.Errorf("elements that the picture does not have: %v", elements)
	}
	for _, l := range strings.Split(m.DOT(), "\n") {
		if open(l) {
			t.Errorf("a string of DOT does not end: %s", l)
		}
	}
	if mermaid := m.Mermaid(); strings.Contains(mermaid, "<script") || strings.Contains(mermaid, `\"`) {
		t.Errorf("Mermaid would read markup:\n%s", mermaid)
	}
}

// open reports whether a quoted string of DOT is still open at the end of a line.
func open(l string) bool {
	inside := false
	for i := 0; i < len(l); i++ {
		switch {
		case l[i] == '\\' && inside:
			i++
		case l[i] == '"':
			inside = !inside
		}
	}
	return inside
}

// TestEmpty: a declaration without agents has a picture, too.
func TestEmpty(t *testing.T) {
	if svg := New("p/default", nil, nil).SVG(); !strings.HasSuffix(svg, "</svg>\n") {
		t.Errorf("got %q", svg)
	}
}

// TestCut: a long text is shortened at the end that matters less.
func TestCut(t *testing.T) {
	long := strings.Repeat("a", 50) + "END"
	for name, end := range map[string]string{"invocation." + strings.Repeat("x", 90) + `["auth"] and 4 more`: `x…["auth"] and 4 more`, `invocation.a["` + strings.Repeat("y", 90) + `"]`: `yyyy"]`} {
		if got := cutName(name, 300, 12); !strings.HasPrefix(got, "invocation.") || !strings.HasSuffix(got, end) || width(got, 12) > 310 {
			t.Errorf("%q is %q, as wide as %v", name, got, width(got, 12))
		}
	}
	if got := cut(long, 100, 12); !strings.HasSuffix(got, "…") || width(got, 12) > 110 {
		t.Errorf("cut: %q", got)
	}
	if got := cutLeft(long, 100, 12); !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "END") {
		t.Errorf("cutLeft: %q", got)
	}
}
