package hclspec

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/zclconf/go-cty/cty"
)

// path is a file name; a relative one starts at the directory of the configuration.
func path(dir string) format[string] {
	return format[string]{summary: InvalidPath, want: cty.String, parse: func(v cty.Value) (string, error) {
		return absolute(dir, v.AsString())
	}}
}

func absolute(dir, s string) (string, error) {
	if err := checkText(s, 4096); err != nil {
		return "", err
	}
	if strings.IndexFunc(s, unicode.IsControl) >= 0 {
		return "", fmt.Errorf("%q holds a control character", s)
	}
	if s == "~" || strings.HasPrefix(s, "~/") {
		return "", fmt.Errorf(`%q: nothing here expands ~; write the whole path, or a relative one, which starts at %s`, clip(s), dir)
	}
	if !filepath.IsAbs(s) {
		s = filepath.Join(dir, s)
	}
	return filepath.Clean(s), nil
}
