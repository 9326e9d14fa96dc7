package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/sandplan/sandplan/planner"
)

// Names on the engine are for people and for exclusion: two of us cannot make the same object, and a
// foreign object in our place is told apart by its labels. Nothing is ever looked up or deleted by name.

// ownName matches the names of objectName, and ownBridge those of bridgeName.
var (
	ownName   = regexp.MustCompile(`^sandplan-[a-z0-9-]+-[0-9a-f]{8}$`)
	ownBridge = regexp.MustCompile(`^sp-[0-9a-f]{12}$`)
)

// objectName is the name of the container, network or volume at an address:
// sandplan-demo-default-login-auth-agent-1f3a9c02. The words are shortened to what every engine
// takes; the hash over scope, address and salt makes the name unique. Salt is what else must give
// another name, such as the content of a volume.
func objectName(s planner.Scope, a planner.Address, salt ...string) string {
	const limit = 100 // a container's name is a file name and, shortened, a host name
	name := namePrefix(s) + plainWords(addressWords(a))
	if len(name) > limit {
		name = name[:limit]
	}
	return strings.TrimRight(name, "-") + "-" + nameHash(s, a, salt...)[:8]
}

// namePrefix is how the names of a scope begin; other scopes may have the same.
func namePrefix(s planner.Scope) string {
	return "sandplan-" + plainWords(s.Project+"-"+s.Workspace) + "-"
}

// bridgeName is the name of a network's bridge. Linux allows 15 characters: "sp-" and 48 bits.
func bridgeName(s planner.Scope, a planner.Address) string {
	return "sp-" + nameHash(s, a, "bridge")[:12]
}

func nameHash(s planner.Scope, a planner.Address, salt ...string) string {
	// The separator cannot occur in a project's name, and addresses hold no NUL.
	sum := sha256.Sum256([]byte(strings.Join(append([]string{s.Project, s.Workspace, string(a)}, salt...), "\x00")))
	return hex.EncodeToString(sum[:])
}

// addressWords drops the words that the name says anyway.
func addressWords(a planner.Address) string {
	w := strings.TrimPrefix(string(a), "invocation.")
	return strings.TrimPrefix(w, "sandplan.")
}

// plainWords lowers case and turns every run of other characters into one dash.
func plainWords(s string) string {
	var b strings.Builder
	dash := true
	for _, r := range strings.ToLower(s) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
			dash = false
		} else if !dash {
			b.WriteByte('-')
			dash = true
		}
	}
	return strings.TrimRight(b.String(), "-")
}
