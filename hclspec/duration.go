package hclspec

import (
	"fmt"
	"regexp"
	"time"

	"github.com/zclconf/go-cty/cty"
)

// Bounds of every timeout. A run needs some seconds to prove its sandbox, and an agent that works for
// more than a week is not waited for.
const (
	minTimeout = time.Second
	maxTimeout = 168 * time.Hour
)

var durationPattern = regexp.MustCompile(`^(?:[0-9]{1,6}h)?(?:[0-9]{1,6}m)?(?:[0-9]{1,6}s)?$`)

// timeout is a duration in hours, minutes and seconds.
var timeout = format[time.Duration]{summary: InvalidDuration, want: cty.String, parse: func(v cty.Value) (time.Duration, error) {
	return parseDuration(v.AsString())
}}

func parseDuration(s string) (time.Duration, error) {
	const allowed = `write hours, minutes and seconds, as in "90s", "30m" or "1h30m"`
	d, err := time.ParseDuration(s)
	if !durationPattern.MatchString(s) || err != nil {
		if regexp.MustCompile(`^[0-9]{1,6}$`).MatchString(s) {
			return 0, fmt.Errorf(`%q has no unit; did you mean "%ss" or "%sm"?`, s, s, s)
		}
		return 0, fmt.Errorf("%q is not a duration; %s", clip(s), allowed)
	}
	if d < minTimeout || d > maxTimeout {
		return 0, fmt.Errorf(`%q is not between "1s" and "168h"`, s)
	}
	return d, nil
}
