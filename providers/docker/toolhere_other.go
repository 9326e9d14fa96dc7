//go:build !linux

package docker

import (
	"context"
	"errors"
)

func hashFiles(context.Context, string, []string) (map[string]any, error) {
	return nil, errors.ErrUnsupported
}
