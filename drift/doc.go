// Package drift says whether what the engine has is what was declared. Gate answers for one start: it
// holds what was observed against the configuration, trusts no label, and knows no exceptions. Audit
// answers for a report: it counts what a plan found, and may be told to ignore some of it.
//
// It is pure: it compares one snapshot, and neither looks at the engine nor changes it. Start with gate.go.
package drift
