package topology

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// The columns of the drawing, from left to right, and what stands in them.
const (
	pictureWidth = 1200
	margin       = 24
	treeX        = margin + 16
	treeWidth    = 236
	netX         = 352
	netWidth     = 404
	agentX       = netX + 16
	agentWidth   = 236
	proxyX       = agentX + agentWidth + 48
	proxyWidth   = netX + netWidth - 16 - proxyX
	uplinkX      = 800
	uplinkWidth  = 44
	hostX        = 912
	hostWidth    = pictureWidth - margin - 16 - hostX
	headHeight   = 104
	firstRow     = headHeight + 26
	boxHeight    = 60
	netPad       = 12
	netHead      = 22
	runnerHeight = 30
	rowGap       = 22
	hostHeight   = 28
	vendorHead   = 46
)

// palette has one colour per vendor, told apart by people who see fewer colours, too.
var palette = [...]string{"#2563eb", "#c2410c", "#0f766e", "#9333ea", "#b91c1c", "#4d7c0f", "#0369a1", "#a21caf"}

func colour(i int) string { return palette[i%len(palette)] }

const (
	ink       = "#0f172a"
	muted     = "#64748b"
	hairline  = "#cbd5e1"
	paper     = "#ffffff"
	ground    = "#f8fafc"
	netFill   = "#eef4ff"
	netEdge   = "#9db8e8"
	readInk   = "#166534"
	readFill  = "#dcfce7"
	writeInk  = "#9a3412"
	writeFill = "#ffedd5"
)

// row is where one invocation stands.
type row struct {
	top, net, middle, bottom int // y of its top, of the network's bottom, of agent and proxy, of its bottom
}

// drawing collects the SVG.
type drawing struct{ b strings.Builder }

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

// SVG is the picture by itself. It refers to nothing outside of it.
func (m Model) SVG() string {
	rows, bottom := m.rows()
	tops := m.vendorTops(rows)
	for i, v := range m.Vendors {
		bottom = max(bottom, tops[i]+vendorHead+len(v.Hosts)*hostHeight+8)
	}
	height := bottom + 84
	d := &drawing{}
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', Arial, sans-serif">`,
		pictureWidth, height, pictureWidth, height, escape(m.summary()))
	d.add(`<title>%s</title>`, escape(m.summary()))
	d.arrows(m)
	d.add(`<rect width="%d" height="%d" fill="%s"/>`, pictureWidth, height, paper)
	d.head(m, bottom)
	for i, v := range m.Invocations {
		d.network(v, rows[i]) // below the lines that lead into it
	}
	for i, v := range m.Invocations {
		d.ways(m, v, rows[i], tops)
	}
	d.uplink(bottom)
	for i, v := range m.Invocations {
		d.invocation(v, rows[i], colour(second(m.vendor(v.Vendor))))
	}
	for i, v := range m.Vendors {
		d.vendor(v, tops[i], colour(i))
	}
	d.legend(bottom)
	d.add(`</svg>`)
	return d.b.String()
}

func second(_ Vendor, i int) int { return i }

func (m Model) summary() string {
	return m.Title + ": every agent reaches the hosts of its vendor through its proxy, and nothing else"
}

// rows gives every invocation its place.
func (m Model) rows() ([]row, int) {
	var out []row
	y := firstRow
	for _, v := range m.Invocations {
		r := row{top: y}
		r.middle = y + netHead + netPad/2 + boxHeight/2
		r.net = y + netHead + netPad + boxHeight + netPad/2
		r.bottom = r.net
		if n := len(v.Runners); n > 0 {
			r.bottom += 10 + n*(runnerHeight+6)
		}
		out = append(out, r)
		y = r.bottom + rowGap
	}
	if len(out) == 0 {
		y += 60
	}
	return out, y
}

// vendorTops puts every vendor beside the agents that use it, as far as the others leave room.
func (m Model) vendorTops(rows []row) []int {
	tops, middles, order := make([]int, len(m.Vendors)), make([]int, len(m.Vendors)), make([]int, len(m.Vendors))
	for i, v := range m.Vendors {
		order[i] = i
		sum, n := 0, 0
		for j, inv := range m.Invocations {
			if inv.Vendor == v.Name {
				sum, n = sum+rows[j].middle, n+1
			}
		}
		middles[i] = sum / max(n, 1)
	}
	// In the order of those who use them: then few lines cross.
	slices.SortStableFunc(order, func(a, b int) int { return middles[a] - middles[b] })
	next := firstRow
	for _, i := range order {
		height := vendorHead + len(m.Vendors[i].Hosts)*hostHeight + 8
		tops[i] = max(next, middles[i]-vendorHead-(height-vendorHead)/2+6)
		next = tops[i] + height + rowGap
	}
	return tops
}

// arrows are the heads of lines, one per colour.
func (d *drawing) arrows(m Model) {
	d.add(`<defs>`)
	head := func(id, fill string) {
		d.add(`<marker id="%s" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z" fill="%s"/></marker>`, id, fill)
	}
	for i := range m.Vendors {
		head(fmt.Sprintf("v%d", i), colour(i))
	}
	head("read", readInk)
	head("write", writeInk)
	d.add(`</defs>`)
}

// head is the title, and the grounds and names of the columns.
func (d *drawing) head(m Model, bottom int) {
	d.text(margin, 40, 20, 600, ink, m.Title)
	d.text(margin, 62, 13, 400, muted, "Every agent reaches the hosts of its vendor, through its own proxy. Nothing else answers: no host, no other agent, no name server.")
	for _, c := range []struct {
		x, w        int
		name, small string
	}{
		{margin, treeX + treeWidth + 16 - margin, "Host", "worktrees"},
		{netX - 16, netWidth + 32, "Sandboxes", "one internal network each"},
		{hostX - 16, hostWidth + 32, "Vendors", "the only hosts that answer"},
	} {
		d.add(`<rect x="%d" y="%d" width="%d" height="%d" rx="12" fill="%s" stroke="%s"/>`, c.x, headHeight-18, c.w, bottom-headHeight+18, ground, "#e2e8f0")
		d.add(`<text x="%d" y="%d" font-size="13" fill="%s"><tspan font-weight="600">%s</tspan><tspan dx="8" fill="%s">%s</tspan></text>`, c.x+16, headHeight+6, ink, c.name, muted, c.small)
	}
}

// ways are the lines of one invocation: worktree to agent and runners, agent to proxy, proxy to hosts.
func (d *drawing) ways(m Model, v Invocation, r row, tops []int) {
	_, n := m.vendor(v.Vendor)
	right := treeX + treeWidth
	d.mounted(v, fmt.Sprintf("M%d %d H%d", right, r.middle, agentX-3))
	for i := range v.Runners {
		y := r.net + 10 + i*(runnerHeight+6) + runnerHeight/2
		x := right + 38
		d.mounted(v, fmt.Sprintf("M%d %d H%d Q%d %d %d %d V%d Q%d %d %d %d H%d", right, r.middle, x-8, x, r.middle, x, r.middle+8, y-8, x, y, x+8, y, agentX-3))
	}
	d.add(`<path d="M%d %d H%d" stroke="%s" stroke-width="1.75" fill="none" marker-end="url(#v%d)"/>`, agentX+agentWidth, r.middle, proxyX-2, colour(n), n)
	if n >= len(m.Vendors) {
		return
	}
	for j := range m.Vendors[n].Hosts {
		y := tops[n] + vendorHead + j*hostHeight + hostHeight/2 - 2
		from, to := uplinkX+uplinkWidth, hostX-1
		bend := (from + to) / 2
		d.add(`<path d="M%d %d H%d C%d %d %d %d %d %d" stroke="%s" stroke-width="1.75" fill="none" marker-end="url(#v%d)"/>`,
			proxyX+proxyWidth, r.middle, from, bend, r.middle, bend, y, to, y, colour(n), n)
	}
}

// mounted is the line of a mount: green where it is read only, amber and in both directions where it is not.
func (d *drawing) mounted(v Invocation, path string) {
	if v.Writable {
		d.add(`<path d="%s" stroke="%s" stroke-width="2" fill="none" marker-start="url(#write)" marker-end="url(#write)"/>`, path, writeInk)
		return
	}
	d.add(`<path d="%s" stroke="%s" stroke-width="1.75" fill="none" marker-end="url(#read)"/>`, path, readInk)
}

func (d *drawing) uplink(bottom int) {
	y, h := headHeight-18, bottom-headHeight+18
	d.add(`<rect x="%d" y="%d" width="%d" height="%d" rx="12" fill="%s" fill-opacity="0.82" stroke="%s"/>`, uplinkX, y, uplinkWidth, h, "#e2e8f0", hairline)
	d.add(`<text transform="translate(%d %d) rotate(-90)" text-anchor="middle" font-size="13" font-weight="600" fill="%s">uplink<tspan dx="8" font-weight="400" fill="%s">proxies only</tspan></text>`,
		uplinkX+uplinkWidth/2+5, y+h/2, ink, muted)
}

func (d *drawing) network(v Invocation, r row) {
	d.add(`<rect x="%d" y="%d" width="%d" height="%d" rx="10" fill="%s" stroke="%s" stroke-dasharray="5 4"/>`, netX, r.top, netWidth, r.net-r.top, netFill, netEdge)
	d.text(netX+16, r.top+18, 12, 400, muted, cutName(v.name(), netWidth-32, 12))
}

// invocation is the worktree's box, agent and proxy, and the runners below.
func (d *drawing) invocation(v Invocation, r row, vendorColour string) {
	d.box(treeX, r.middle-boxHeight/2, treeWidth, boxHeight, hairline, v.Worktree)
	d.text(treeX+14, r.middle-6, 12, 600, ink, cutLeft(v.Worktree, treeWidth-28, 13))
	d.badge(treeX+14, r.middle+8, v)
	d.box(agentX, r.middle-boxHeight/2, agentWidth, boxHeight, vendorColour, v.Address+".agent")
	d.add(`<text x="%d" y="%d" font-size="13" fill="%s"><tspan font-weight="600">agent</tspan><tspan dx="8" fill="%s">%s</tspan></text>`,
		agentX+14, r.middle-6, ink, muted, escape(cut("phase."+v.Phase, agentWidth-80, 13)))
	d.text(agentX+14, r.middle+16, 12, 400, ink, cut(v.toolText(), agentWidth-28, 12))
	d.box(proxyX, r.middle-boxHeight/2, proxyWidth, boxHeight, vendorColour, v.Address+".proxy")
	d.text(proxyX+14, r.middle-6, 13, 600, ink, "proxy")
	d.text(proxyX+14, r.middle+16, 12, 400, muted, "CONNECT")
	for i, name := range v.Runners {
		y := r.net + 10 + i*(runnerHeight+6)
		d.add(`<rect x="%d" y="%d" width="%d" height="%d" rx="8" fill="%s" stroke="%s" stroke-dasharray="3 3"/>`, agentX, y, netX+netWidth-16-agentX, runnerHeight, paper, "#94a3b8")
		d.add(`<text x="%d" y="%d" font-size="12" fill="%s"><tspan font-weight="600">runner</tspan><tspan dx="6">%s</tspan><tspan dx="10" fill="%s">no network at all</tspan></text>`,
			agentX+14, y+runnerHeight/2+4, ink, escape(cut(name, 150, 12)), muted)
	}
}

func (d *drawing) badge(x, y int, v Invocation) {
	stroke, fill := readInk, readFill
	if v.Writable {
		stroke, fill = writeInk, writeFill
	}
	d.add(`<rect x="%d" y="%d" width="%d" height="18" rx="9" fill="%s"/>`, x, y-4, int(width(v.mode(), 12))+18, fill)
	d.text(x+9, y+9, 11, 600, stroke, v.mode())
}

func (d *drawing) vendor(v Vendor, y int, c string) {
	h := vendorHead + len(v.Hosts)*hostHeight + 8
	d.box(hostX, y, hostWidth, h, c, "vendor."+v.Name)
	d.text(hostX+14, y+20, 13, 600, ink, cut("vendor."+v.Name, hostWidth-28, 13))
	d.text(hostX+14, y+36, 11, 400, muted, cut(v.Kind, hostWidth-28, 11))
	for i, host := range v.Hosts {
		at := y + vendorHead + i*hostHeight
		d.add(`<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s"/>`, hostX+8, at, hostWidth-16, hostHeight-4, "#f1f5f9")
		d.text(hostX+18, at+16, 12, 400, ink, cut(host, hostWidth-36, 12))
	}
	if len(v.Hosts) == 0 {
		d.text(hostX+14, y+vendorHead+4, 12, 400, muted, "no host")
	}
}

func (d *drawing) legend(bottom int) {
	y := bottom + 36
	x := margin
	mark := func(draw, text string) {
		d.add(draw, x, y, x+28, y)
		d.text(x+38, y+4, 12, 400, muted, text)
		x += 38 + int(width(text, 12)) + 36
	}
	mark(`<path d="M%d %d L%d %d" stroke="`+readInk+`" stroke-width="1.75" marker-end="url(#read)"/>`, "mounted read only")
	mark(`<path d="M%d %d L%d %d" stroke="`+writeInk+`" stroke-width="2" marker-start="url(#write)" marker-end="url(#write)"/>`, "mounted writable")
	mark(`<path d="M%d %d L%d %d" stroke="`+muted+`" stroke-width="1.75"/>`, "TCP, in the colour of the vendor")
	mark(`<path d="M%d %d L%d %d" stroke="`+netEdge+`" stroke-width="2" stroke-dasharray="5 4"/>`, "internal network: no way out, no address of the host")
}

func (d *drawing) box(x, y, w, h int, stroke, title string) {
	d.add(`<rect x="%d" y="%d" width="%d" height="%d" rx="8" fill="%s" stroke="%s" stroke-width="1.5"><title>%s</title></rect>`, x, y, w, h, paper, stroke, escape(title))
}

func (d *drawing) text(x, y, size, weight int, fill, text string) {
	d.add(`<text x="%d" y="%d" font-size="%d" font-weight="%d" fill="%s">%s</text>`, x, y, size, weight, fill, escape(text))
}

func escape(s string) string { return html.EscapeString(s) }

// width is about how wide a text is. Fonts differ, so it errs on the side of too wide.
func width(s string, size int) float64 {
	w := 0.0
	for _, c := range s {
		switch {
		case strings.ContainsRune("ijl.,:;'|!()[]/ tfr", c):
			w += 0.4
		case strings.ContainsRune("mwMW@%", c):
			w += 0.98
		case c >= 'A' && c <= 'Z':
			w += 0.74
		case c > 0x2e80:
			w += 1
		default:
			w += 0.64
		}
	}
	return w * float64(size)
}

// cut shortens a text at its end so that it fits.
func cut(s string, room, size int) string {
	if width(s, size) <= float64(room) {
		return s
	}
	r := []rune(s)
	for len(r) > 1 && width(string(r)+"…", size) > float64(room) {
		r = r[:len(r)-1]
	}
	return string(r) + "…"
}

// cutLeft shortens a path at its beginning: its end tells it from others.
func cutLeft(s string, room, size int) string {
	if width(s, size) <= float64(room) {
		return s
	}
	r := []rune(s)
	for len(r) > 1 && width("…"+string(r), size) > float64(room) {
		r = r[1:]
	}
	return "…" + string(r)
}

// cutName shortens the name of an invocation before its key, which tells it from its like, and so does the number
// of those that it stands for.
func cutName(s string, room, size int) string {
	i := strings.IndexAny(s, "[ ")
	if i < 0 || width(s, size) <= float64(room) {
		return cut(s, room, size)
	}
	name, rest := s[:i], cutLeft(s[i:], room*3/4, size)
	return cut(name, room-int(width(rest, size)), size) + rest
}
