//go:build !linux

package main

// hideTyping knows Linux terminals only: elsewhere nothing is applied, and no secret asked for.
func hideTyping(int) (show func()) { return func() {} }
