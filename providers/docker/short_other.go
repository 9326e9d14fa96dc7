//go:build !linux

package docker

import "os"

func readShort(path string) (string, error) {
	raw, err := os.ReadFile(path)
	return string(raw), err
}
