//go:build !linux

package main

// inside: containers are Linux's. Elsewhere this is a client that validates, formats, draws and compares declarations.
func inside(string, []string) (code int, mine bool) { return 0, false }
