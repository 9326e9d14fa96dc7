// Package machine words what a command has to say for programs: the lines of -json and the documents
// of show -json and validate -json.
//
// Its Stream has the methods of render.Renderer, so a command does not know who reads. The shapes and
// names are those that tools for Terraform's output know; schemas stand in docs/schema, and tests
// hold every line to them. A line carries no value of a setting: values are in the plan's document only,
// and sensitive ones nowhere. Start with stream.go.
package machine
