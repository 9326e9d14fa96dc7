package hclspec

import "testing"

func unfixable(t *testing.T) []string { return nil }
