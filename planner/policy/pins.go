//go:build !sandplantest

package policy

// testPin does nothing in the product; see pins_sandplantest.go. Where built-in vendors are and whose
// certificates their CLIs believe, and which versions of them are proven, is nobody's to say.
func testPin(*Host) {}

func testEnv(string) []Env { return nil }

func testBinaries() []binary { return nil }
