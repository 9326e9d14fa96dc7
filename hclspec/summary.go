package hclspec

// Summaries of the diagnostics that this package makes. They are stable: people search for them, tests
// name them, and for each of them a fixture in testdata shows the mistake. HCL's own diagnostics
// (syntax, unknown arguments and blocks, wrong calls) come on top.
const (
	// Files.
	ConfigNotFound    = "Configuration not readable"
	NoConfiguration   = "No configuration files"
	VarFileUnreadable = "Variable file not readable"
	InvalidLock       = "Invalid lock file"
	DamagedSpec       = "Damaged specification"

	// Bounds.
	TooDeep          = "Nested too deeply"
	TooLarge         = "Value too large"
	NumberRange      = "Number out of range"
	TooManyInstances = "Too many instances"
	TooMany          = "Too many diagnostics"

	// Structure.
	MissingSandplan    = "Missing sandplan block"
	DuplicateBlock     = "Duplicate block"
	DuplicateName      = "Duplicate name"
	InvalidName        = "Invalid name"
	MisplacedAttribute = "Attribute without effect"
	UnknownProvider    = "Unknown provider"
	InvalidConstraint  = "Invalid version constraint"
	UnsupportedVersion = "Unsupported sandplan version"

	// References.
	InvalidReference    = "Invalid reference"
	UndeclaredReference = "Reference to undeclared name"
	ReferenceCycle      = "Reference cycle"
	NotAReference       = "Not a reference"

	// Variables.
	MissingVariable      = "No value for required variable"
	InvalidVariableValue = "Invalid value for variable"
	UndeclaredVariable   = "Value for undeclared variable"
	InvalidVarArgument   = "Invalid -var argument"
	BlockInVarFile       = "Block in variable file"

	// Assertions.
	InvalidCondition = "Invalid condition"
	FailedCheck      = "Check failed"
	MissingAssert    = "Check without assertion"

	// Vendors and phases.
	MissingKind       = "Vendor without kind"
	MissingCommand    = "Vendor without command"
	MissingHost       = "Vendor without host"
	InvalidHost       = "Invalid choice of hosts"
	UnknownCredential = "Unknown credential"
	CredentialSource  = "Credential needs one source"
	MissingBase       = "Phase without base"
	PhaseWidened      = "Phase widens its base"
	InvalidTool       = "Invalid tool"

	// Instances.
	InvalidForEach = "Invalid for_each"
	InvalidCount   = "Invalid count"

	// Values.
	WrongType         = "Unsuitable value"
	SensitiveValue    = "Sensitive value in visible place"
	SensitiveOutput   = "Output of a sensitive value"
	InvalidChoice     = "Invalid choice"
	InvalidNumber     = "Invalid number"
	InvalidDuration   = "Invalid duration"
	InvalidSize       = "Invalid size"
	InvalidPrefix     = "Invalid network"
	InvalidAddress    = "Invalid address"
	InvalidHostname   = "Invalid host name"
	InvalidEnvName    = "Invalid environment variable"
	InvalidEnvValue   = "Invalid environment value"
	InvalidCommand    = "Invalid command"
	InvalidImage      = "Invalid image"
	InvalidCLIVersion = "Invalid CLI version"
	InvalidModel      = "Invalid model"
	InvalidPath       = "Invalid path"
	InvalidPrompt     = "Invalid prompt"
	InvalidUser       = "Invalid user"
	InvalidEngineHost = "Invalid engine host"
)
