package hclspec

// Vars are the values for input variables, from weakest to strongest: Env, the variable files beside
// the configuration, Args in their order.
type Vars struct {
	// Env is the process environment ("NAME=value"). Only names with the prefix SANDPLAN_VAR_ are read.
	Env []string
	// Args are -var and -var-file in the order of the command line.
	Args []VarArg
	// Unknown is for validate: values are checked and then taken as unknown, and none is required.
	Unknown bool
	// Partial takes a variable without a value as unknown, and what depends on it is marked Unknown: for those who
	// need a part of a configuration only.
	Partial bool
	// Ask, if not nil, is called for each variable that has no value and no default, in the order of
	// their names. The answer is read like the value of -var; ok is false when there is none.
	Ask func(Variable) (value string, ok bool)
}

// VarArg is one -var (Assign) or one -var-file (File).
type VarArg struct {
	Assign string // NAME=VALUE
	File   string // relative to Source.Cwd
}

// varEnvPrefix begins the environment variables that set input variables.
const varEnvPrefix = "SANDPLAN_VAR_"
