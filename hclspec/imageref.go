package hclspec

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

const digestPattern = `sha256:[0-9a-f]{64}`

var (
	imageID        = regexp.MustCompile(`^` + digestPattern + `$`)
	imageReference = regexp.MustCompile(`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::[0-9]{1,5})?/)?` + // registry
		`[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*` + // name
		`(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@` + digestPattern + `)?$`)
	hasTag = regexp.MustCompile(`:[^/:]+$`)
)

// image is a reference with a tag or a digest, or a bare image ID.
var image = format[string]{summary: InvalidImage, want: cty.String, parse: func(v cty.Value) (string, error) {
	s := v.AsString()
	return s, checkImage(s)
}}

func checkImage(s string) error {
	const allowed = `write name:tag, name@sha256:DIGEST or a bare sha256:ID, as in "codeboost/agent:2.1"`
	switch {
	case imageID.MatchString(s):
		return nil
	case len(s) > 512 || !imageReference.MatchString(s):
		also := ""
		if l := strings.ToLower(s); l != s && len(l) <= 512 && imageReference.MatchString(l) {
			also = fmt.Sprintf("; did you mean %q?", l)
		}
		return fmt.Errorf("%q is not an image; %s%s", clip(s), allowed, also)
	case !hasTag.MatchString(s):
		return fmt.Errorf("%q has neither a tag nor a digest; did you mean %q?", s, s+":latest")
	}
	return nil
}
