// Package hclspec reads a sandplan configuration: HCL source, variable values and a catalogue of
// built-in names in, a Spec out. A Spec is plain data: everything evaluated, everything expanded,
// every attribute with the range that declares it, so that the rest of the program never sees HCL.
//
// It knows nothing of Docker and of what a phase permits; the names of built-in vendors and phases
// come in as a Catalog. It never panics on any input. Start with spec.go, then load.go.
package hclspec
