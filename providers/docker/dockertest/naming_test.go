package dockertest_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// naming knows which of the fake's IDs stands for which name in a recording.
type naming struct {
	ids   map[string]string // by name
	names map[string]string // by ID
	scrub *scrubber
}

var nameOfID = regexp.MustCompile(`\{(short )?(id\d+)\}`)

// resolve puts the fake's IDs where a recording has names.
func (n *naming) resolve(s string) string {
	return nameOfID.ReplaceAllStringFunc(s, func(name string) string {
		id := n.ids["{"+strings.TrimPrefix(name[1:], "short ")]
		switch {
		case id == "":
			return name
		case strings.HasPrefix(name, "{short "):
			return id[:12]
		}
		return id
	})
}

// compare says where an answer differs from a recorded one. A name that stands for nothing yet is bound
// to the ID in its place.
func (n *naming) compare(at string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		m, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %.200v, recorded as an object", at, got)}
		}
		return n.compareObjects(at, want, m)
	case []any:
		items, ok := got.([]any)
		if !ok || len(items) != len(want) {
			return []string{fmt.Sprintf("%s is %.300v, recorded as %.300v", at, got, want)}
		}
		for _, key := range []string{"Name", "Names", "Path", "Destination"} {
			want, items = sortedBy(key, want), sortedBy(key, items)
		}
		var out []string
		for i := range want {
			out = append(out, n.compare(fmt.Sprintf("%s[%d]", at, i), want[i], items[i])...)
		}
		return out
	case string:
		return n.compareTexts(at, want, got)
	}
	if compact(want) != compact(got) && !(want == nil && got == "") {
		return []string{fmt.Sprintf("%s is %.200v, recorded as %.200v", at, compact(got), compact(want))}
	}
	return nil
}

func (n *naming) compareObjects(at string, want, got map[string]any) []string {
	var out []string
	seen := map[string]bool{}
	for _, k := range sortedNames(want) {
		resolved := n.resolve(k)
		value, ok := got[resolved]
		seen[resolved] = true
		if !ok {
			out = append(out, fmt.Sprintf("%s.%s is missing, recorded as %.200v", at, k, compact(want[k])))
			continue
		}
		out = append(out, n.compare(at+"."+k, want[k], value)...)
	}
	for _, k := range sortedNames(got) {
		if !seen[k] {
			out = append(out, fmt.Sprintf("%s.%s is %.200v, and was not there when it was recorded", at, k, compact(got[k])))
		}
	}
	return out
}

func (n *naming) compareTexts(at, want string, got any) []string {
	s := fmt.Sprint(got)
	if whole := nameOfID.FindString(want); whole == want && want != "" && n.ids[want] == "" && n.names[s] == "" && longID.FindString(s) == s && s != "" {
		n.ids[want], n.names[s] = s, want
	}
	if want == "{some}" && got != nil && s != "" && s != "0" || n.resolve(want) == s || n.scrub.text(s) == want {
		return nil
	}
	return []string{fmt.Sprintf("%s is %.200q, recorded as %.200q", at, s, n.resolve(want))}
}

func compact(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}

func escapeQuery(q string) string {
	values := url.Values{}
	for _, pair := range strings.Split(q, "&") {
		k, v, _ := strings.Cut(pair, "=")
		values.Set(k, v)
	}
	return values.Encode()
}

// withoutIDs is a refusal without the IDs in it.
func withoutIDs(v any) any {
	s := compact(v)
	for _, id := range []*regexp.Regexp{nameOfID, longID, shortID} {
		s = id.ReplaceAllString(s, "{id}")
	}
	return s
}
