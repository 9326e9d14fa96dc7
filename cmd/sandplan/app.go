package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sandplan/sandplan/cmd/sandplan/internal/render"
)

// Exit codes that all commands share. drift, fmt, plan and run have further ones of their own.
const (
	exitOK      = 0
	exitError   = 1
	exitChanges = 2   // plan -detailed-exitcode
	exitRefused = 125 // run: sandplan itself refused, as docker run does
)

// stream is where output goes; columns is 0 when it is no terminal.
type stream struct {
	io.Writer
	columns int
}

// app is what a command takes from the process, and the options that come before the command.
type app struct {
	version string
	self    string // the running binary
	home    string
	host    string // this machine's name
	who     string // user@host
	environ []string
	getenv  func(string) string
	stdin   io.Reader
	// interactive: stdin is a terminal, so that values of variables may be asked for.
	interactive bool
	// hide keeps stdin from showing what is typed, until show is called.
	hide       func() (show func())
	stdout     stream
	stderr     stream
	chdir      func(string) error
	getwd      func() (string, error)
	now        func() time.Time
	listen     func() (signals <-chan os.Signal, stop func())
	interfaces func() ([]net.Addr, error) // addresses of this host, as the kernel tells them

	global globalFlags
	cwd    string
	shown  *ui      // of the command that runs
	added  []string // what the environment put on the command line, in words
	log    *slog.Logger
	code   int // of the command that ran
}

// globalFlags are the options that every command has.
type globalFlags struct {
	config    string
	workspace string
	noColor   bool
	verbose   bool
	json      bool // lines of JSON in place of text
	reads     bool // of the engine only: no writing call can be made

	engine string // a file of sandplan snapshot, in place of an engine
	taken  string // when that was made, once it was read
}

// main runs one command line and returns its exit code.
func (a *app) main(args []string) int {
	a.shown, a.added = nil, nil
	wrongLog := a.openLog()
	if asksCompletion(args) {
		a.cwd, _ = a.getwd() // without one there is nothing to complete from
		return a.complete(args)
	}
	dir, args, err := takeChdir(args)
	if err == nil {
		err = wrongLog
	}
	if err == nil && dir != "" {
		if err = a.chdir(dir); err != nil {
			err = fmt.Errorf("-chdir=%s leads nowhere: %w", dir, plainPathError(err))
		}
	}
	if err == nil {
		a.cwd, err = a.getwd()
	}
	if err != nil {
		return a.fail(err)
	}
	root := a.rootCommand()
	if args, err = a.environmentArgs(root, args); err != nil {
		return a.fail(err)
	}
	// Never nil: the library would then read the process's arguments by itself.
	root.SetArgs(append([]string{}, doubleDashes(args)...))
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	if err := root.ExecuteContext(context.Background()); err != nil {
		return a.fail(err)
	}
	return a.code
}

// action adapts a command's function to cobra: what it returns is the exit code, and the errors that it
// met are printed already.
func (a *app) action(f func(cmd *cobra.Command, args []string) int) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.logCommand(cmd)
		a.code = f(cmd, args)
		return nil
	}
}

func (a *app) rootCommand() *cobra.Command {
	var asked bool
	root := &cobra.Command{
		Use:           "sandplan",
		Short:         "Sandboxes for AI agents, declared in HCL and proven before every start",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return unknownCommand(cmd, args[0])
			case asked:
				a.code = a.printVersion(cmd.Context(), false)
				return nil
			}
			return cmd.Help()
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(a.help)
	root.Flags().BoolVarP(&asked, "version", "v", false, "as the command version")
	pf := root.PersistentFlags()
	pf.StringVar(&a.global.config, "config", a.getenv("SANDPLAN_CONFIG"), "the configuration, a file or directory `path` (SANDPLAN_CONFIG)")
	pf.StringVar(&a.global.workspace, "workspace", a.getenv("SANDPLAN_WORKSPACE"), "the workspace, a `name` (SANDPLAN_WORKSPACE; \"default\")")
	pf.BoolVar(&a.global.noColor, "no-color", false, "plain text (NO_COLOR)")
	root.AddCommand(
		a.initCommand(), a.validateCommand(), a.planCommand(), a.applyCommand(), a.runCommand(), a.dispatchCommand(), a.verifyCommand(), a.logsCommand(), a.driftCommand(), a.snapshotCommand(), a.destroyCommand(),
		a.fmtCommand(), a.showCommand(), a.graphCommand(), a.outputCommand(), a.stateCommand(), a.runsCommand(), a.forceUnlockCommand(), a.versionCommand(), a.completionCommand(),
	)
	a.completes(root)
	return root
}

// renderer is for one of the two streams.
func (a *app) renderer(s stream) *render.Renderer {
	return &render.Renderer{
		Color: s.columns > 0 && !a.global.noColor && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb",
		Width: s.columns, Verbose: a.global.verbose, NoHints: a.getenv("SANDPLAN_IN_AUTOMATION") != "",
	}
}

// jsonFlag is -json of the commands that tell as they go.
func (a *app) jsonFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.global.json, "json", false, "one JSON object per line, on stdout; docs/schema says what they hold")
}

// usageErr is a mistake on the command line.
type usageErr struct {
	command string // whose -help says more: "plan", "state list"; "" is sandplan itself
	message string
}

func (e *usageErr) Error() string { return e.message }

func misuse(command, format string, args ...any) error {
	return &usageErr{command: command, message: fmt.Sprintf(format, args...)}
}

// fail prints an error and returns the exit code for it. For a mistake on the command line it says what is
// wrong and where to read on, never the whole help.
func (a *app) fail(err error) int {
	var u *usageErr
	if !errors.As(err, &u) {
		a.ui().fail(err)
		return exitError
	}
	help := strings.TrimSpace("sandplan " + u.command)
	message := u.message
	if len(a.added) > 0 { // nobody finds a mistake on a line that they have not typed
		message += " (" + strings.Join(a.added, "; ") + ")"
	}
	a.ui().printErr(a.ui().err.Usage(message, help))
	switch u.command {
	case "run", "dispatch", "verify":
		return a.refused(a.ui(), "the command line is wrong")
	}
	return exitError
}
