package main

// instead says what to use for commands that people know from Terraform and Docker, and that have no place here.
var instead = map[string]string{
	"refresh":   "sandplan keeps no state that could be stale; use \"sandplan drift\" to compare the engine with what was applied",
	"taint":     "use \"sandplan apply -replace=ADDRESS\"",
	"untaint":   "nothing is ever marked; \"-replace=ADDRESS\" holds for one plan",
	"import":    "sandplan never adopts objects that it has not made; remove them and run \"sandplan apply\"",
	"workspace": useWorkspace,
	"env":       useWorkspace,
	"login":     "credentials belong to vendors; see the credential block",
	"logout":    "credentials belong to vendors; see the credential block",
	"providers": "there is one provider, docker, and it is built in",
	"get":       "there are no modules to fetch; \"sandplan init\" pins images",
	"modules":   "there are no modules; a configuration is the *.sandplan.hcl files of one directory",
	"console":   "declare an output, and read it with \"sandplan output\"",
	"test":      "a check block holds the configuration to something, and \"sandplan verify\" tries to get out of its sandboxes",

	"up":      "use \"sandplan apply\", and \"sandplan run ADDRESS\" for each agent",
	"down":    "use \"sandplan destroy\"",
	"rm":      "use \"sandplan destroy -target=ADDRESS\"",
	"ps":      "use \"sandplan state list\"",
	"ls":      "use \"sandplan state list\"",
	"inspect": "use \"sandplan state show ADDRESS\"",
	"exec":    "whatever is executed in a sandbox from outside ends its run; \"sandplan dispatch\" runs an approved command on its worktree",
	"build":   "images are built with docker; \"sandplan init\" pins them",
	"pull":    "\"sandplan init\" pins an image, and \"sandplan apply\" pulls what has a digest in a registry",
}

const (
	useWorkspace = "use \"-workspace=NAME\" or SANDPLAN_WORKSPACE; \"sandplan state list -all\" lists what is there"
	noState      = "there is no state file: the engine is the state"
	noBackend    = "there is no state, and so no backend to configure"
)

// insteadOfState is the same for commands of state.
var insteadOfState = map[string]string{
	"rm":   noState + "; remove the object itself, or its block and \"sandplan apply\"",
	"mv":   noState + "; an object with another address is another object, and \"sandplan apply\" makes it",
	"pull": noState + "; \"sandplan show -json\" is what it holds",
	"push": noState,
}

// refusedFlags are options that Terraform has and that would be a lie here.
var refusedFlags = map[string]string{
	"refresh":      "a plan that did not look at the engine is worth nothing here",
	"refresh-only": "use \"sandplan drift\", which reports and changes nothing",
	"lock":         "a change without the lock could meet another one half-way",
	"state":        noState,
	"state-out":    noState,
	"backup":       noState,

	"backend":             noBackend,
	"backend-config":      noBackend,
	"reconfigure":         noBackend,
	"migrate-state":       noBackend,
	"force-copy":          noBackend,
	"from-module":         "there are no modules",
	"plugin-dir":          "the one provider is built in",
	"generate-config-out": "sandplan never adopts objects that it has not made",
	"force":               "-auto-approve is what does not ask",
	"yes":                 "-auto-approve is what does not ask",
}

// flagHabit says why a command has no such option, or what to use; "" where nobody would expect it.
func flagHabit(command, flag string) string {
	switch {
	case command == "plan" && flag == "auto-approve":
		return "a plan asks nothing; it is one of apply and destroy"
	case command == "validate" && (flag == "var" || flag == "var-file"):
		return "what it says holds whatever the variables are"
	case command == "run" && (flag == "timeout" || flag == "env" || flag == "user" || flag == "memory"):
		return "whatever bounds an agent is declared: set it in its invocation block, and apply"
	case command == "graph" && flag == "type":
		return "a picture is always of what is declared; -plan=FILE draws a saved plan"
	}
	return refusedFlags[flag]
}
