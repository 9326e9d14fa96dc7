package hclspec

// Scope is plain data: the values that outputs and checks refer to, by their first two names
// ("var.worktree", "vendor.claude"), each in JSON with its type.
type Scope struct {
	Values map[string]ScopeValue
}

// ScopeValue is one value of a Scope.
type ScopeValue struct {
	Type  []byte // cty's JSON form of the type
	Value []byte // cty's JSON form of the value
	// Sensitive are the paths within the value that are sensitive.
	Sensitive []string
}
