// Package planner is the vocabulary of sandplan and its pure planning: addresses, fields and their
// one comparer, resources that are wanted, objects that are observed, and the plan that leads from
// one to the other.
//
// It knows nothing of Docker, of the terminal, or of how the HCL is read; of HCL it uses only
// hcl.Range, to say where something was declared. It reads no clock, no environment, and no file but a saved plan.
// Start with field.go (what is compared, and how), then resource.go, then diff.go.
package planner
