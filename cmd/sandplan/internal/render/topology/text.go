package topology

import (
	"fmt"
	"strings"
)

// DOT is the picture for Graphviz.
func (m Model) DOT() string {
	var b strings.Builder
	line := func(depth int, format string, args ...any) {
		b.WriteString(strings.Repeat("  ", depth) + fmt.Sprintf(format, args...) + "\n")
	}
	line(0, "digraph %s {", dotQuote(m.Title))
	line(1, "rankdir=LR; compound=true; fontname=\"sans-serif\";")
	line(1, "node [shape=box, style=rounded, fontname=\"sans-serif\"]; edge [fontname=\"sans-serif\", fontsize=10];")
	line(1, "uplink [label=\"uplink\", shape=cds];")
	for i, v := range m.Invocations {
		line(1, "tree%d [label=%s, shape=folder];", i, dotQuote(v.Worktree))
		line(1, "subgraph cluster_%d {", i)
		line(2, "label=%s; style=dashed;", dotQuote(v.name()+": internal network"))
		line(2, "agent%d [label=%s];", i, dotQuote(fmt.Sprintf("agent\nphase.%s\n%s", v.Phase, v.toolText())))
		line(2, "proxy%d [label=\"proxy\"];", i)
		line(2, "agent%d -> proxy%d [label=\"CONNECT\"];", i, i)
		line(1, "}")
		direction := ""
		if v.Writable {
			direction = ", dir=both, color=\"#b45309\""
		}
		line(1, "tree%d -> agent%d [label=%s%s];", i, i, dotQuote(v.mode()), direction)
		for j, r := range v.Runners {
			line(1, "runner%d_%d [label=%s, style=\"rounded,dashed\"];", i, j, dotQuote("runner "+r+"\nno network"))
			line(1, "tree%d -> runner%d_%d [label=%s%s];", i, i, j, dotQuote(v.mode()), direction)
		}
		vendor, n := m.vendor(v.Vendor)
		line(1, "proxy%d -> uplink [color=%s];", i, dotQuote(colour(n)))
		for j := range vendor.Hosts {
			line(1, "uplink -> host%d_%d [label=%s, color=%s];", n, j, dotQuote(v.Address), dotQuote(colour(n)))
		}
	}
	for i, v := range m.Vendors {
		line(1, "subgraph cluster_vendor%d {", i)
		line(2, "label=%s;", dotQuote("vendor."+v.Name))
		for j, h := range v.Hosts {
			line(2, "host%d_%d [label=%s, color=%s];", i, j, dotQuote(h), dotQuote(colour(i)))
		}
		line(1, "}")
	}
	line(0, "}")
	return b.String()
}

// dotQuote is a quoted string of DOT. A backslash there escapes more than itself, so each is doubled.
func dotQuote(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `"`, `\"`)
	return `"` + strings.ReplaceAll(s, "\n", `\n`) + `"`
}

// Mermaid is the picture for Mermaid, which GitHub and others draw by themselves.
func (m Model) Mermaid() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("flowchart LR")
	line("  uplink([uplink])")
	for i, v := range m.Vendors {
		line("  subgraph vendor%d [%s]", i, mermaidQuote("vendor."+v.Name))
		for j, h := range v.Hosts {
			line("    host%d_%d[%s]", i, j, mermaidQuote(h))
		}
		line("  end")
	}
	for i, v := range m.Invocations {
		arrow := "-->"
		if v.Writable {
			arrow = "<==>"
		}
		line("  tree%d[(%s)]", i, mermaidQuote(v.Worktree))
		line("  subgraph net%d [%s]", i, mermaidQuote(v.name()))
		line("    agent%d[%s]", i, mermaidQuote("agent, phase."+v.Phase+"\n"+v.toolText()))
		line("    proxy%d[proxy]", i)
		line("    agent%d -->|CONNECT| proxy%d", i, i)
		line("  end")
		line("  tree%d %s|%s| agent%d", i, arrow, v.mode(), i)
		for j, r := range v.Runners {
			line("  runner%d_%d[%s]", i, j, mermaidQuote("runner "+r+"\nno network"))
			line("  tree%d %s|%s| runner%d_%d", i, arrow, v.mode(), i, j)
		}
		line("  proxy%d --> uplink", i)
	}
	for i, v := range m.Vendors {
		for j := range v.Hosts {
			line("  uplink --> host%d_%d", i, j)
		}
	}
	return b.String()
}

// mermaidQuote is a label. Mermaid reads entities in it, and markup.
func mermaidQuote(s string) string {
	s = strings.NewReplacer("&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "#", "#35;", "`", "#96;").Replace(s)
	return `"` + strings.ReplaceAll(s, "\n", "<br/>") + `"`
}
