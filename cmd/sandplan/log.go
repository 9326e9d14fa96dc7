package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sandplan/sandplan/providers/docker"
)

// The log is for those who look for what went wrong in sandplan or between it and the engine. Nothing is
// logged unless SANDPLAN_LOG asks for it, and never what is sent or answered: it may be a secret.

// openLog reads SANDPLAN_LOG: a level, for lines on stderr, or the path of a file that gets all of them.
func (a *app) openLog() error {
	a.log = slog.New(slog.DiscardHandler)
	value := a.getenv("SANDPLAN_LOG")
	var to io.Writer
	level := slog.LevelDebug
	switch strings.ToLower(value) {
	case "", "0", "off":
		return nil
	case "debug", "trace", "1":
		to = logWriter{a}
	case "info":
		to, level = logWriter{a}, slog.LevelInfo
	default:
		if !strings.Contains(value, "/") {
			return misuse("", "SANDPLAN_LOG=%s: it is to be info or debug, for lines on stderr, or the path of a file, with a slash in it", value)
		}
		file, err := os.OpenFile(value, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return fmt.Errorf("open the log that SANDPLAN_LOG names: %w", err)
		}
		to = file // open until the process ends
	}
	a.log = slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level}))
	return nil
}

// logWriter is stderr, around what a terminal shows at its bottom.
type logWriter struct{ app *app }

func (w logWriter) Write(p []byte) (int, error) {
	if u := w.app.shown; u != nil {
		u.write(w.app.stderr, string(p))
		return len(p), nil
	}
	return w.app.stderr.Write(p)
}

// logCommand logs which command runs, with the names of its options: their values may be secrets.
func (a *app) logCommand(cmd *cobra.Command) {
	var given []string
	cmd.Flags().Visit(func(f *pflag.Flag) { given = append(given, f.Name) })
	a.log.Info("command", "name", name(cmd), "options", strings.Join(given, " "), "version", a.version, "directory", a.cwd)
}

// logCall logs one call to the engine.
func (a *app) logCall(c docker.Call) {
	attrs := []any{"method", c.Method, "path", c.Path, "status", c.Status, "took", c.Took}
	if c.Err != nil {
		attrs = append(attrs, "error", c.Err)
	}
	a.log.Debug("engine", attrs...)
}
