package audit

import "github.com/sandplan/sandplan/planner"

// Rule is what a result of a SARIF log breaks. IDs are stable: alerts are followed by them.
type Rule struct {
	ID, Name    string
	Short, Help string
	Level       string // error, warning, note
	// Severity is how bad it is when somebody did it on purpose, from 0 to 10; "" is no matter of security.
	Severity string
}

// rules are those of an audit: one for each class of settings, and those for whole objects.
func rules() []Rule {
	const fix = " `sandplan plan` shows what would put it right, and `sandplan apply` does it. No run starts before."
	return []Rule{
		{"sandplan.drift.replace", "SettingChanged", "A setting of a sandbox was changed on the engine",
			"The object does not have the value that the last apply gave it. Putting it right makes the object anew." + fix, "error", "8.0"},
		{"sandplan.drift.set", "BridgeSettingLost", "A setting of a bridge was changed or lost",
			"Settings of a bridge are lost when the machine restarts, and are put back in place." + fix, "error", "5.0"},
		{"sandplan.drift.assigned", "AssignedValueOdd", "A value that the engine assigns has not the shape that it must have",
			"Nothing declares this value, and the engine never chooses one like it." + fix, "error", "6.0"},
		{"sandplan.drift.extra", "UndeclaredPart", "A sandbox has something that nothing declares",
			"An endpoint, a mount, a file or a setting was added to the object." + fix, "error", "9.0"},
		{"sandplan.drift.object", "ObjectChanged", "An object of a sandbox is missing, was started, or is there twice",
			"The object as a whole is not what the last apply left." + fix, "error", "8.0"},
		{"sandplan.conflict", "ForeignObject", "An object of somebody else stands where one of sandplan's would",
			"sandplan adopts, changes and removes only what carries its own labels. Rename or remove the object.", "error", "7.0"},
		{"sandplan.pending", "NotApplied", "The configuration was changed and not applied",
			"What the engine has is what was applied last; the configuration says something else by now." + fix, "warning", ""},
		{"sandplan.error", "NotAudited", "The audit is not whole",
			"Something could not be looked at, so that nothing can be said of it.", "error", ""},
	}
}

// ruleOf is the ID of the rule that a finding breaks.
func ruleOf(f planner.Finding) string {
	if f.Unreadable() {
		return "sandplan.error"
	}
	switch f.Kind {
	case planner.FindingConflict:
		return "sandplan.conflict"
	case planner.FindingPending:
		return "sandplan.pending"
	}
	return "sandplan.drift." + class(f)
}
