package docker

import (
	"strings"

	"github.com/sandplan/sandplan/planner"
)

// The few properties that every look needs before it knows the kind: networks, containers in list
// form, containers in inspect form and volumes keep them in different places.

// treeID is the engine's ID of an object, in full.
func treeID(v tree) string {
	if id, ok := v["Id"].(string); ok {
		return id
	}
	s, _ := v["Name"].(string) // a volume has no other ID
	return s
}

// treeName is the name of a network or volume, or of a container without the slash in front.
func treeName(v tree) string {
	if s, ok := v["Name"].(string); ok {
		return strings.TrimPrefix(s, "/")
	}
	if names, ok := v["Names"].([]any); ok {
		for _, n := range names {
			// A link adds further names, with another slash in them.
			if s, ok := n.(string); ok && strings.Count(s, "/") == 1 {
				return strings.TrimPrefix(s, "/")
			}
		}
	}
	return ""
}

// treeLabels are an object's labels as they are; see labelsOf.
func treeLabels(v tree) any {
	if config, ok := v["Config"].(map[string]any); ok {
		return config["Labels"]
	}
	return v["Labels"]
}

// engineStatus is the engine's own word for the status of a container, in list form or in full; nil where there is none.
func engineStatus(v tree) any {
	if state, ok := v["State"].(map[string]any); ok {
		return state["Status"]
	}
	return v["State"] // in list form
}

// treeStatus is the status of a container, in list form or in full. A status that nobody knows counts
// as running: that is the one which is never taken for harmless.
func treeStatus(v tree) planner.Status {
	started := ""
	if state, ok := v["State"].(map[string]any); ok {
		started, _ = state["StartedAt"].(string)
	}
	switch engineStatus(v) {
	case nil:
		return planner.StatusNone
	case "created":
		// A container whose process could not be started stays "created".
		if started != "" && !isZero(started) {
			return planner.StatusExited
		}
		return planner.StatusCreated
	case "exited", "dead", "removing":
		return planner.StatusExited
	}
	return planner.StatusRunning
}
