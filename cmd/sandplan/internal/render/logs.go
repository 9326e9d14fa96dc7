package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sandplan/sandplan/providers/docker/egress"
	"github.com/sandplan/sandplan/providers/docker/egress/reason"
)

// LogHeading stands above the lines of a proxy's log.
func (r *Renderer) LogHeading(run string) string {
	p := &page{r: r}
	p.line(faint, "run ", run)
	p.line(bold, fmt.Sprintf("%-12s %5s  %-8s %-34s %s", "TIME (UTC)", "LINE", "WHAT", "HOST:PORT", "WHY"))
	return p.String()
}

// LogLine is one line of a proxy's log. Names in it were chosen by the agent, and are cleaned like all
// others.
func (r *Renderer) LogLine(e egress.Entry) string {
	p := &page{r: r}
	at := e.Time
	if t, err := time.Parse(time.RFC3339Nano, e.Time); err == nil {
		at = t.UTC().Format("15:04:05.000")
	}
	what, st := logWhat(e)
	target := ""
	if e.Host != "" {
		target = e.Host
		if e.Port != 0 {
			target += ":" + strconv.Itoa(e.Port)
		}
	}
	p.put(plain, fmt.Sprintf("%-12s %5d  ", at, e.Seq))
	p.put(st, fmt.Sprintf("%-8s ", what))
	p.line(plain, strings.TrimRight(fmt.Sprintf("%-34s %s", Clean(target), logWhy(e)), " "))
	return p.String()
}

func logWhat(e egress.Entry) (string, style) {
	switch e.Event {
	case egress.EventDecision:
		if e.Decision == egress.Allow {
			return "allow", green
		}
		return "refuse", red
	case egress.EventRepeated, egress.EventUnlisted:
		return fmt.Sprintf("+%d", e.Count), red
	case egress.EventLimit, egress.EventTrouble:
		return string(e.Event), boldRed
	}
	return string(e.Event), plain
}

func logWhy(e egress.Entry) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch e.Event {
	case egress.EventDecision:
		add("%s", e.Reason)
		parts = append(parts, logWhere(e)...)
	case egress.EventClosed:
		add("%s after %s, %d bytes up, %d down", e.Reason, duration(time.Duration(e.DurationMS)*time.Millisecond), e.Up, e.Down)
	case egress.EventRepeated:
		add("%s, %s like an earlier one", e.Reason, plural(int(e.Count), "refusal"))
		parts = append(parts, logWhere(e)...)
	case egress.EventUnlisted:
		add("%s, %s not listed, too many kinds at once", e.Reason, plural(int(e.Count), "refusal"))
	case egress.EventLimit:
		add("%s", e.Reason.Text())
	case egress.EventEnd:
		add("%d bytes up, %d down%s", e.Up, e.Down, countsText(e.Counts))
	}
	if e.Error != "" {
		add("(%s)", e.Error)
	}
	return strings.Join(parts, " ")
}

// logWhere is the address that was decided on, and the name in the hello where it is another one.
func logWhere(e egress.Entry) (parts []string) {
	if e.Address != "" {
		parts = append(parts, "at "+e.Address)
	}
	if e.SNI != "" && e.SNI != e.Host {
		parts = append(parts, "TLS name "+e.SNI)
	}
	return parts
}

// countsText is how often each reason was decided on, that of tunnels that were let through apart.
func countsText(counts map[reason.Reason]int64) string {
	text := ""
	for _, why := range slices.Sorted(maps.Keys(counts)) {
		if why != reason.Allowed && why != reason.Unused {
			text += fmt.Sprintf(", %d %s", counts[why], Clean(string(why)))
		}
	}
	return text
}
