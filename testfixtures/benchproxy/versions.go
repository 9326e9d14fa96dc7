package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// versions prints what ran, one line each, as the programs themselves say it. One that says nothing is
// named all the same: figures without it are nobody's.
func versions(w io.Writer, o options) {
	fmt.Fprintf(w, "\n%s\n", oursRan(o.sandplan))
	fmt.Fprintf(w, "bench and relays: %s, %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, p := range [][]string{{"squid", "-v"}, {"tinyproxy", "-v"}} {
		if strings.Contains(p[0], o.ways) {
			fmt.Fprintln(w, firstLine(p[0], p[1]))
		}
	}
	fmt.Fprintf(w, "processors: %d, of which sandplan may use %d\n", runtime.NumCPU(), processors())
}

// oursRan is which sandplan it was. A build that does not know its commit is told by its digest alone.
func oursRan(path string) string {
	text, err := output(path, "version", "-json")
	if err != nil {
		return fmt.Sprintf("sandplan: %v", err)
	}
	var v struct {
		Sandplan string `json:"sandplan_version"`
		Build    struct {
			Go       string `json:"go_version"`
			Revision string `json:"revision"`
			Modified bool   `json:"modified"`
		} `json:"build"`
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return fmt.Sprintf("sandplan: %v", err)
	}
	commit := "a build that names no commit"
	if v.Build.Revision != "" {
		commit = "commit " + v.Build.Revision
	}
	if v.Build.Modified {
		commit += " with changes"
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("sandplan: %v", err)
	}
	return fmt.Sprintf("sandplan %s, %s, %s, sha256 %.12x", v.Sandplan, commit, v.Build.Go, sha256.Sum256(b))
}

func firstLine(name string, args ...string) string {
	path, err := lookPath(name)
	if err != nil {
		return fmt.Sprintf("%s: %v", name, err)
	}
	text, err := output(path, args...)
	if err != nil {
		return fmt.Sprintf("%s: %v", name, err)
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func output(path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	b, err := exec.CommandContext(ctx, path, args...).Output()
	return string(b), err
}

// lookPath finds a program that Debian keeps where only root looks.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		return "", fmt.Errorf("%w: make bench-proxy installs it", err)
	}
	return path, nil
}
