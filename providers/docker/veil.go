package docker

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/sandplan/sandplan/planner"
)

// veil turns the stand-ins of a configuration that was compiled on paper into values that nobody knows.
type veil struct {
	pool string // what decides the addresses
	// shim is the name of the shim volume, which holds a hash of the image tool.
	shim, tool string
}

var (
	standInText    = regexp.MustCompile(standInMark + `([^` + standInMark + `]*)` + standInMark)
	standInAddress = regexp.MustCompile(`\b240\.0\.[0-9]{1,3}\.[0-9]{1,3}(?:/[0-9]{1,2})?(?::[0-9]{1,5})?\b`)
	standInUserID  = regexp.MustCompile(`\b` + strconv.Itoa(standInUser) + `\b`)
)

// later is how a part of a value is shown that is not known yet.
const later = "(known after apply)"

// value is a value without its stand-ins. One that is nothing but a stand-in is unknown as a whole; in a
// longer text the part is.
func (v veil) value(value planner.Value) planner.Value {
	if value.Text() == "" {
		return value
	}
	var tree any
	dec := json.NewDecoder(strings.NewReader(value.Text()))
	dec.UseNumber()
	if dec.Decode(&tree) != nil {
		return value
	}
	if what, whole := v.whole(tree); whole {
		return planner.Unknown(what)
	}
	return planner.JSON(v.parts(tree))
}

// whole reports whether a value stands for something unknown as a whole, and for what.
func (v veil) whole(tree any) (what string, ok bool) {
	switch t := tree.(type) {
	case json.Number:
		return unknownOwner, t.String() == strconv.Itoa(standInUser)
	case string:
		if m := standInText.FindStringSubmatch(t); m != nil && m[0] == t {
			return m[1], true
		}
		if standInAddress.FindString(t) == t && t != "" {
			return "subnet_pool " + v.pool, true
		}
		if t == v.shim && strings.Contains(v.tool, standInMark) {
			return unknownTool, true
		}
		id := strconv.Itoa(standInUser)
		return unknownOwner, t == id+":"+id
	}
	return "", false
}

func (v veil) parts(tree any) any {
	switch t := tree.(type) {
	case json.Number:
		if _, whole := v.whole(t); whole {
			return later
		}
	case string:
		if strings.Contains(v.tool, standInMark) {
			t = strings.ReplaceAll(t, v.shim, later)
		}
		t = standInText.ReplaceAllLiteralString(t, later)
		t = standInAddress.ReplaceAllLiteralString(t, later)
		t = standInUserID.ReplaceAllLiteralString(t, later)
		return strings.ReplaceAll(t, rootMark, ".")
	case []any:
		for i := range t {
			t[i] = v.parts(t[i])
		}
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, x := range t {
			key, _ := v.parts(k).(string)
			out[key] = v.parts(x)
		}
		return out
	}
	return tree
}
