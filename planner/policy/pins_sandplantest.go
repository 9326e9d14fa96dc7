//go:build sandplantest

package policy

import (
	"os"
	"strings"
)

// The tests of the real CLIs lead them to a mock of both vendors. Only binaries built with the tag
// sandplantest have it, and only while these variables are set:
//
// SANDPLAN_TEST_VENDOR_ADDRESS=ADDRESS is where the built-in hosts are, instead of where a lookup says.
// SANDPLAN_TEST_VENDOR_CA=PATH is a file of the agent's image with the authority of their certificates.
//
// SANDPLAN_TEST_VENDOR_CLI="KIND VERSION SHA256 …" are versions that count as proven: those that the proof
// is about to try.
const (
	testAddressVariable = "SANDPLAN_TEST_VENDOR_ADDRESS"
	testCAVariable      = "SANDPLAN_TEST_VENDOR_CA"
	testCLIVariable     = "SANDPLAN_TEST_VENDOR_CLI"
)

func testBinaries() []binary {
	var out []binary
	words := strings.Fields(os.Getenv(testCLIVariable))
	for ; len(words) >= 3; words = words[3:] {
		out = append(out, binary{words[0], words[1], words[2]})
	}
	return out
}

func testPin(h *Host) {
	if address := os.Getenv(testAddressVariable); address != "" {
		h.Addresses = []string{address}
	}
}

func testEnv(kind string) []Env {
	file := os.Getenv(testCAVariable)
	switch {
	case file == "":
		return nil
	case kind == KindClaude:
		return []Env{{"NODE_EXTRA_CA_CERTS", file}}
	default:
		return []Env{{"CODEX_CA_CERTIFICATE", file}}
	}
}
