package hclspec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

var (
	sizePattern = regexp.MustCompile(`^([0-9]{1,12})(B|KiB|MiB|GiB|TiB)$`)
	// lazyPattern matches what other tools accept and what means two different things among them.
	lazyPattern = regexp.MustCompile(`^([0-9]{1,12}) ?([kKmMgGtT])i?[bB]?$`)
)

var sizeUnits = map[string]int64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

// size is a number of bytes with a binary unit.
func size(low, high int64) format[int64] {
	return format[int64]{summary: InvalidSize, want: cty.String, parse: func(v cty.Value) (int64, error) {
		return parseSize(v.AsString(), low, high)
	}}
}

func parseSize(s string, low, high int64) (int64, error) {
	m := sizePattern.FindStringSubmatch(s)
	if m == nil {
		also := ""
		if l := lazyPattern.FindStringSubmatch(s); l != nil {
			also = fmt.Sprintf("; did you mean %q?", l[1]+strings.ToUpper(l[2])+"iB")
		}
		return 0, fmt.Errorf(`%q is not a size; write a whole number and B, KiB, MiB, GiB or TiB, as in "512MiB"%s`, clip(s), also)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	unit := sizeUnits[m[2]]
	if err != nil || n > high/unit || n*unit < low {
		return 0, fmt.Errorf("%q is not between %s and %s", s, FormatSize(low), FormatSize(high))
	}
	return n * unit, nil
}

// FormatSize writes a number of bytes with the largest unit that leaves it whole.
func FormatSize(n int64) string {
	for _, u := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if f := sizeUnits[u]; n >= f && n%f == 0 {
			return strconv.FormatInt(n/f, 10) + u
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}
