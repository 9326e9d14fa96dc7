package docker

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sandplan/sandplan/providers/docker/egress"
	"github.com/sandplan/sandplan/providers/docker/shim"
)

// The one JSON argument of sandplan's own programs is their whole declaration, with rows of its own. It stands
// in a container's command line as text.

// pathArgument is where it stands.
const pathArgument = "Config.Cmd[1]"

// ownArgument is the argument in a command line, and the program that gets it.
func ownArgument(v any) (program, text string, ok bool) {
	cmd, isList := v.([]any)
	if !isList || len(cmd) != 2 {
		return "", "", false
	}
	program, _ = cmd[0].(string)
	text, ok = cmd[1].(string)
	return program, text, ok && (program == commandShim || program == commandEgress)
}

// decodeArgument replaces the JSON argument of shim and proxy by what it says, for rows of its own.
// Only an argument that is written exactly as the program writes it is taken apart: another spelling
// might be read differently by the process that gets it. Whether it makes sense is not asked: what is
// wanted does, and each of its parts has a row.
func decodeArgument(v any) any {
	program, text, ok := ownArgument(v)
	if !ok || !isSpelled(program, text) {
		return v
	}
	return takeArgument(v)
}

// isSpelled reports whether an argument is written as its program would write it.
func isSpelled(program, text string) bool {
	var c interface{ Text() (string, error) } = new(shim.Config)
	if program == commandEgress {
		c = new(egress.Config)
	}
	if json.Unmarshal([]byte(text), c) != nil {
		return false
	}
	again, err := c.Text()
	return err == nil && again == text
}

// takeArgument takes the argument apart as it is.
func takeArgument(v any) any {
	program, text, ok := ownArgument(v)
	if !ok {
		return v
	}
	said, err := decodeTree([]byte(text))
	if err != nil {
		return v
	}
	return argued(program, said)
}

// argued is a command line whose argument says this.
func argued(program string, said tree) any {
	if program == commandEgress {
		splitHosts(said)
	}
	return []any{program, map[string]any(said)}
}

// observeArgument is decodeArgument along the rows of the table, which remembers.
func (t *table) observeArgument(r reply) {
	config, _ := r.tree["Config"].(map[string]any)
	program, text, ok := ownArgument(config["Cmd"])
	if !ok {
		return
	}
	if !t.spelled.has(program, text) {
		if !isSpelled(program, text) {
			return
		}
		t.spelled.learn(program, text)
	}
	t.takeArgument(r)
}

// takeArgument takes the argument apart along the rows of the table.
func (t *table) takeArgument(r reply) {
	config, _ := r.tree["Config"].(map[string]any)
	program, text, ok := ownArgument(config["Cmd"])
	if !ok {
		return
	}
	known := r.known
	if known == nil { // of an object that was not read along the rows
		known = make([]*literal, len(t.rows))
	}
	p := parser{raw: []byte(text), known: known}
	if said, err := asTree(p.document(t.argument)); err == nil {
		config["Cmd"] = argued(program, said)
	}
}

// spelling is an argument that was found to be written as its program writes it.
type spelling string

// contentKey is the one key whose text is no text but bytes: not every spelling of it is the one that is written.
const contentKey = "content"

// alike reports whether an argument is written like another: with the same keys, numbers, lists and objects in
// the same places, and with other texts at most where both stand for themselves. Then it is as its program
// writes it, too, since to a program a text is what it says; what it says is compared, as all of the argument.
func (s spelling) alike(text string) bool {
	a, b, key := string(s), text, ""
	for {
		i := strings.IndexByte(a, '"')
		if i < 0 {
			return a == b
		}
		if len(b) <= i || a[:i+1] != b[:i+1] {
			return false
		}
		a, b = a[i+1:], b[i+1:]
		i, j := textEnd(a), textEnd(b)
		if i < 0 || j < 0 {
			return false
		}
		isKey := strings.HasPrefix(a[i+1:], ":")
		if a[:i] != b[:j] && (isKey || key == contentKey || !isPlainText(a[:i]) || !isPlainText(b[:j])) {
			return false
		}
		if isKey {
			key = a[:i]
		}
		a, b = a[i+1:], b[j+1:]
	}
}

// isPlainText reports whether a text stands for itself. An empty one may be left away with its key.
func isPlainText(s string) bool { return s != "" && isWritten([]byte(s)) }

// textEnd is where the quote is that ends a text, -1 for nowhere.
func textEnd(s string) int {
	for from := 0; ; {
		n := strings.IndexByte(s[from:], '"')
		if n < 0 {
			return -1
		}
		end := from + n
		escapes := len(s[:end]) - len(strings.TrimRight(s[:end], `\`))
		if escapes%2 == 0 {
			return end
		}
		from = end + 1
	}
}

// written is an argument that was found to be written as this program writes it: another one may not.
type written struct {
	program  string
	argument spelling
}

// spellings are those of the arguments of one kind of container, of which there are few. Objects are looked at
// concurrently.
type spellings struct {
	all atomic.Pointer[[]written]
}

// has reports whether a text is written like one that is known of the program.
func (s *spellings) has(program, text string) bool {
	all := s.all.Load()
	return all != nil && slices.ContainsFunc(*all, func(known written) bool { return known.program == program && known.argument.alike(text) })
}

// learn remembers a text, while there is room.
func (s *spellings) learn(program, text string) {
	all := s.all.Load()
	var more []written
	if all != nil {
		more = slices.Clone(*all)
	}
	if more = append(more, written{program, spelling(text)}); len(more) <= maxLiterals {
		s.all.CompareAndSwap(all, &more) // somebody else may be faster; there will be another time
	}
}
