package docker

import (
	"encoding/json"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/sandplan/sandplan/planner"
)

// Normalisers and shapes of single rows of containers. Each names the spelling that it undoes.

// healthcheck: an image's intervals are merged even into a check that is switched off.
func healthcheck(v any) any {
	h, _ := v.(map[string]any)
	if test, ok := h["Test"].([]any); ok && len(test) == 1 && test[0] == "NONE" {
		return "none"
	}
	return v
}

// restartPolicy: 20.10 echoes "" when nothing was asked for, and means "no".
func restartPolicy(v any) any {
	if v == nil || v == "" {
		return "no"
	}
	return v
}

func consoleSize(v any) any {
	return orElse([]any{json.Number("0"), json.Number("0")})(v)
}

// capabilities: any case, with or without CAP_, in any order.
func capabilities(v any) any {
	return mapSet(v, func(s string) string {
		s = strings.ToUpper(s)
		if s != "ALL" && !strings.HasPrefix(s, "CAP_") {
			s = "CAP_" + s
		}
		return s
	})
}

// securityOpts: profiles as their hash, and the three spellings of the one switch. What stands for a
// profile is no option that an engine takes, so nothing but a profile can look like one.
func securityOpts(v any) any {
	return mapSet(v, func(s string) string {
		switch s {
		case "no-new-privileges:true", "no-new-privileges=true":
			return "no-new-privileges"
		}
		if short := securityOpt(s); short != s {
			return "profile " + short
		}
		return s
	})
}

// mapSet is set with each element respelled.
func mapSet(v any, respell func(string) string) any {
	items, ok := list(v).([]any)
	if !ok {
		return v
	}
	out := make([]any, len(items))
	for i, item := range items {
		s, ok := item.(string)
		if !ok {
			return v
		}
		out[i] = respell(s)
	}
	return set(out)
}

// ulimits are a list by name, in any order.
func ulimits(v any) any {
	items, ok := list(v).([]any)
	if !ok {
		return v
	}
	byText := make(map[string]any, len(items))
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = planner.JSON(item).Text()
		byText[texts[i]] = item
	}
	slices.Sort(texts)
	out := make([]any, len(items))
	for i, text := range texts {
		out[i] = byText[text]
	}
	return out
}

// options are those of a mount: what is not set is left away, as engines and clients do or do not.
func options(v any) any {
	m, ok := dict(v).(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for key, value := range m {
		if !isZero(value) {
			out[key] = value
		}
	}
	return out
}

// mountMode is ReadOnly in the words of people.
func mountMode(v any) any {
	switch v {
	case true:
		return "read-only"
	case false, nil:
		return "writable"
	}
	return v
}

func oneOf(values ...any) func(any) bool {
	return func(v any) bool { return slices.Contains(values, v) }
}

func selinuxLabel(v any) bool {
	s, ok := orElse("")(v).(string)
	return ok && (s == "" || regexp.MustCompile(`^system_u:(object|system)_r:container_(file_)?t:s0:c\d+,c\d+$`).MatchString(s))
}

func hardwareAddress(v any) bool {
	s, _ := v.(string)
	mac, err := net.ParseMAC(s)
	return err == nil && len(mac) == 6 && mac[0]&1 == 0
}

func ipv4Address(v any) bool {
	s, _ := v.(string)
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}
