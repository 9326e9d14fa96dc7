package hclspec

// Summaries of the diagnostics that this package makes. They are stable: people search for them and
// tests name them. HCL's own diagnostics (syntax, unknown arguments and blocks) come on top.
const (
	ConfigNotFound  = "Configuration not found"
	NoConfiguration = "No configuration files"
)
