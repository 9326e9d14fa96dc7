package render

import (
	"fmt"
	"net/netip"
	"strings"
)

// Pinned is what init has pinned.
type Pinned struct {
	Engine, API string
	File        string
	Written     bool
	Images      []PinnedImage
	DNS         []netip.Addr
	// Invocation is the first one, for the last of the next commands; Prompt says that it needs one there.
	Invocation string
	Prompt     bool
	// Lost says that an image is not there, so that nothing can follow yet.
	Lost bool
}

// PinnedImage is one image of the lock file.
type PinnedImage struct {
	Ref, ID, CLI string
	Shell        bool
	What         string // new, kept, moved
}

// Pinned is the text of init. It ends with the next three commands.
func (r *Renderer) Pinned(v Pinned) string {
	p := &page{r: r}
	p.line(plain, "Engine ", v.Engine, ", API ", v.API)
	p.nl()
	switch {
	case len(v.Images) == 0:
		p.line(plain, "There is no image to pin.")
	case v.Written:
		p.line(plain, "Pinned in ", v.File, ", which belongs into version control:")
	default:
		p.line(plain, v.File, " is up to date:")
	}
	wide := 0
	for _, i := range v.Images {
		wide = max(wide, cells(i.Ref))
	}
	for _, i := range v.Images {
		p.put(plain, "  ", i.Ref, strings.Repeat(" ", wide-cells(i.Ref)), "  ", shortID(i.ID))
		var facts []string
		if i.CLI != "" {
			facts = append(facts, "CLI "+i.CLI)
		}
		if i.Shell {
			facts = append(facts, "holds a shell")
		}
		facts = append(facts, i.What)
		p.line(faint, "  (", strings.Join(facts, ", "), ")")
	}
	if len(v.DNS) > 0 {
		p.line(plain, "  name servers of the proxies: ", strings.Trim(fmt.Sprint(v.DNS), "[]"))
	}
	if v.Lost {
		return p.String()
	}
	run := v.Invocation
	if run == "" {
		run = "ADDRESS"
	}
	run = shellQuote(run)
	if v.Prompt {
		run = "-prompt=FILE " + run
	}
	p.next("Next:", "sandplan plan", "sandplan apply", "sandplan run "+run)
	return p.String()
}

// Started is the text of init when it has written a first configuration.
func (r *Renderer) Started(file string) string {
	p := &page{r: r}
	p.line(boldGreen, "Wrote ", file, ".")
	p.nl()
	p.prose("It declares one agent that reviews this directory and cannot write to it. Set the image of your agent in it, and then:")
	p.nl()
	p.next("", "sandplan init", "sandplan plan", "sandplan apply")
	return p.String()
}

func (p *page) next(head string, commands ...string) {
	if p.r.NoHints {
		return
	}
	if head != "" {
		p.nl()
		p.line(plain, head)
	}
	for _, c := range commands {
		p.line(bold, "  ", c)
	}
}
