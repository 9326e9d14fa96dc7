//go:build linux && !amd64

package shim

// oldDeniedCalls: only amd64 has calls that others never had.
func oldDeniedCalls(uintptr) []deniedCall { return nil }
