package dockertest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"time"
)

// scrubber takes out of what an engine says all that is different each time: engine IDs become {id1},
// {id2} in the order in which they appear, times and process IDs and addresses of hardware a word, and
// long texts their hash.
type scrubber struct {
	ids   map[string]string
	words [][2]string
}

func newScrubber() *scrubber { return &scrubber{ids: map[string]string{}} }

// word replaces a text wherever it stands.
func (s *scrubber) word(text, by string) { s.words = append(s.words, [2]string{text, by}) }

var (
	longID  = regexp.MustCompile(`(?:sha256:)?\b[0-9a-f]{64}\b`)
	shortID = regexp.MustCompile(`\b[0-9a-f]{12}\b`)
	macAddr = regexp.MustCompile(`^[0-9a-f]{2}(:[0-9a-f]{2}){5}$`)
)

// longText is how long a text may be that stays as it is: profiles and declarations are only echoed.
const longText = 300

func (s *scrubber) text(v string) string {
	for _, w := range s.words {
		v = strings.ReplaceAll(v, w[0], w[1])
	}
	if t, err := time.Parse(time.RFC3339Nano, v); err == nil && t.Year() > 1 {
		return "{time}"
	}
	if macAddr.MatchString(v) {
		return "{mac}"
	}
	if len(v) > longText {
		sum := sha256.Sum256([]byte(v))
		option := "" // seccomp={…} stays an option
		if name, _, ok := strings.Cut(v, "="); ok && len(name) < 20 {
			option = name + "="
		}
		return option + "{long " + hex.EncodeToString(sum[:6]) + "}"
	}
	v = longID.ReplaceAllStringFunc(v, func(id string) string {
		if strings.HasPrefix(id, "sha256:") || id == none0 {
			return id // of an image: that is its content
		}
		if s.ids[id] == "" {
			s.ids[id] = fmt.Sprintf("{id%d}", len(s.ids)+1)
		}
		return s.ids[id]
	})
	return shortID.ReplaceAllStringFunc(v, func(short string) string {
		for id, name := range s.ids {
			if strings.HasPrefix(id, short) {
				return "{short " + name[1:]
			}
		}
		return short
	})
}

// volatile are numbers and texts that say when and where, by their key.
var volatile = map[string]bool{"Pid": true, "Created": true, "CreatedAt": true, "SandboxKey": true, "Status": true}

// dropped is what says where an engine keeps its files, and differs from one storage driver to the next.
var dropped = map[string]bool{"GraphDriver": true, "Storage": true, "LastTagTime": true, "Metadata": true}

func (s *scrubber) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range sortedNames(v) {
			if dropped[k] {
				continue
			}
			if strings.HasPrefix(k, "dev.sandplan.lock.") {
				out[k] = "{lock}"
				continue
			}
			if n, isNumber := v[k].(json.Number); volatile[k] && isNumber && n != "0" {
				out[k] = "{some}"
				continue
			}
			if text, isText := v[k].(string); (k == "SandboxKey" || k == "Command") && isText && text != "" || k == "Status" && strings.Contains(text, " ") {
				out[k] = "{some}"
				continue
			}
			out[s.text(k)] = s.value(v[k])
			if list, ok := v[k].([]any); ok && k == "Mounts" { // in no order
				out[k] = sortedBy("Destination", s.value(list).([]any))
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = s.value(v[i])
		}
		return out
	case string:
		return s.text(v)
	}
	return v
}

// json is a body of JSON, or one of text, or none.
func (s *scrubber) json(raw []byte) any {
	if len(strings.TrimSpace(string(raw))) == 0 {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return s.text(string(raw))
	}
	return s.value(v)
}

// plain is an answer without what a recording leaves out, and otherwise as it is.
func (*scrubber) plain(raw []byte) any {
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil
	}
	return withoutDropped(v)
}

func withoutDropped(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if v[k] = withoutDropped(v[k]); dropped[k] {
				delete(v, k)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutDropped(v[i])
		}
	}
	return v
}

// sortedBy brings a list that an engine shows in no order into one.
func sortedBy(key string, list []any) []any {
	sort.SliceStable(list, func(i, j int) bool {
		a, _ := list[i].(map[string]any)
		b, _ := list[j].(map[string]any)
		return fmt.Sprint(a[key]) < fmt.Sprint(b[key])
	})
	return list
}
