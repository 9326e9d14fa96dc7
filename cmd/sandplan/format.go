package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/spf13/cobra"
)

// Exit codes of fmt.
const (
	exitFmtError       = 2
	exitFmtUnformatted = 3
)

type fmtFlags struct{ check, diff, list, write, recursive bool }

func (a *app) fmtCommand() *cobra.Command {
	var f fmtFlags
	cmd := &cobra.Command{
		Use:   "fmt [options] [FILE|DIR|-]…",
		Short: "Lay out configuration files in the usual style",
		Long: `
Rewrites configuration and variable files (*.hcl) in the canonical layout and lists those that it changed.
"-" reads standard input and writes standard output. Exit code 2 for a file that cannot be read or
parsed, 3 when -check finds one that is not formatted.`,
		Example: "sandplan fmt -recursive\nsandplan fmt -check -diff",
		RunE:    a.action(func(_ *cobra.Command, args []string) int { return a.format(f, args) }),
	}
	cmd.Flags().BoolVar(&f.check, "check", false, "change nothing; exit code 3 when a file is not formatted")
	cmd.Flags().BoolVar(&f.diff, "diff", false, "show what changes")
	cmd.Flags().BoolVar(&f.list, "list", true, "do not list files that are not formatted")
	cmd.Flags().BoolVar(&f.write, "write", true, "do not write the files")
	cmd.Flags().BoolVar(&f.recursive, "recursive", false, "go into directories")
	return cmd
}

func (a *app) format(f fmtFlags, args []string) int {
	u := a.ui()
	if slices.Contains(args, "-") && len(args) > 1 {
		a.fail(misuse("fmt", "- is standard input and stands alone"))
		return exitFmtError
	}
	if len(args) == 1 && args[0] == "-" {
		return a.formatStdin(u, f)
	}
	if len(args) == 0 {
		args = []string{a.source().Path}
		if args[0] == "" {
			args[0] = "."
		}
	}
	code := exitOK
	for _, arg := range args {
		files, err := hclFiles(arg, f.recursive)
		if err != nil {
			u.fail(err)
			return exitFmtError
		}
		for _, file := range files {
			changed, err := a.formatFile(u, f, file)
			switch {
			case err != nil:
				u.fail(err)
				code = exitFmtError
			case changed && f.check && code == exitOK:
				code = exitFmtUnformatted
			}
		}
	}
	return code
}

// formatted is the canonical layout of a source that parses.
func formatted(src []byte, name string) ([]byte, error) {
	if _, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos); diags.HasErrors() {
		return nil, diags
	}
	return hclwrite.Format(src), nil
}

func (a *app) formatStdin(u *ui, f fmtFlags) int {
	src, err := io.ReadAll(a.stdin)
	if err != nil {
		u.fail(fmt.Errorf("read standard input: %w", err))
		return exitFmtError
	}
	u.sources(map[string][]byte{"<stdin>": src})
	out, err := formatted(src, "<stdin>")
	if err != nil {
		u.fail(err)
		return exitFmtError
	}
	if f.check {
		if !bytes.Equal(src, out) {
			return exitFmtUnformatted
		}
		return exitOK
	}
	u.print(string(out))
	return exitOK
}

func (a *app) formatFile(u *ui, f fmtFlags, file string) (changed bool, err error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return false, fmt.Errorf("cannot read %s: %w", file, plainPathError(err))
	}
	u.sources(map[string][]byte{file: src})
	out, err := formatted(src, file)
	if err != nil || bytes.Equal(src, out) {
		return false, err
	}
	if !f.check && f.write {
		if err := replaceContent(file, out); err != nil {
			return false, fmt.Errorf("cannot write %s: %w", file, plainPathError(err))
		}
	}
	if f.list {
		u.print(file + "\n")
	}
	if f.diff {
		u.print(u.human.LineDiff(string(src), string(out)))
	}
	return true, nil
}

// replaceContent writes a file in place, as editors do, so that links stay links. Its mode stays.
func replaceContent(file string, content []byte) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, info.Mode().Perm())
}

// hclFiles are the files that fmt means by an argument. Hidden files are not ours, but for the lock file,
// which is written formatted.
func hclFiles(arg string, recursive bool) ([]string, error) {
	info, err := os.Stat(arg)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", arg, plainPathError(err))
	}
	if !info.IsDir() {
		return []string{arg}, nil
	}
	var files []string
	err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != arg && (!recursive || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".hcl") || strings.HasPrefix(d.Name(), "."):
			return nil
		}
		// A link to a file is read by plan, so it is ours, too; a link that leads nowhere is told.
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	return files, err
}
