package docker

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sandplan/sandplan/planner"
)

// The labels that make an object ours. They say whose it is and what it should be; the gate trusts
// none of them.
const (
	labelPrefix    = "dev.sandplan."
	labelSchema    = labelPrefix + "schema"
	labelProject   = labelPrefix + "project"
	labelWorkspace = labelPrefix + "workspace"
	labelAddress   = labelPrefix + "address"
	labelKind      = labelPrefix + "kind"
	labelDeclared  = labelPrefix + "declared"
	labelDigest    = labelPrefix + "digest"
	labelOrigin    = labelPrefix + "origin"
)

// maxDeclared bounds what a label may unpack to: anybody on the engine can write labels. The largest
// declaration, an agent with its seccomp profile as a hash, is below 32 KiB.
const maxDeclared = 1 << 20

// identity is what the labels of an object say about whose it is.
type identity struct {
	schema  string
	scope   planner.Scope
	address planner.Address
	kind    planner.Kind
	digest  string
	origin  string
}

// labelsFor are all labels of a new object of a scope.
func labelsFor(scope planner.Scope, origin string, r planner.Resource) map[string]string {
	return map[string]string{
		labelSchema:    planner.Schema,
		labelProject:   scope.Project,
		labelWorkspace: scope.Workspace,
		labelAddress:   string(r.Addr),
		labelKind:      string(r.Kind),
		labelDeclared:  encodeDeclared(planner.Declared(r.Fields)),
		labelDigest:    r.Digest,
		labelOrigin:    origin,
	}
}

// readIdentity reads labels. ok is false for an object that is of no scope, ours or another's.
func readIdentity(labels map[string]string) (identity, bool) {
	id := identity{
		schema:  labels[labelSchema],
		scope:   planner.Scope{Project: labels[labelProject], Workspace: labels[labelWorkspace]},
		address: planner.Address(labels[labelAddress]),
		kind:    planner.Kind(labels[labelKind]),
		digest:  labels[labelDigest],
		origin:  labels[labelOrigin],
	}
	return id, id.scope.Project != "" && id.scope.Workspace != ""
}

// encodeDeclared packs a declaration (planner.Declared) into a label: deflate, base64.
func encodeDeclared(declared []byte) string {
	var buf bytes.Buffer
	// Writes to a buffer do not fail, and the level is a constant.
	w, _ := flate.NewWriter(&buf, flate.BestCompression)
	_, _ = w.Write(declared)
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(buf.Bytes())
}

// decodeDeclared unpacks a declaration and checks it against the label "digest".
func decodeDeclared(labels map[string]string) ([]byte, error) {
	packed, err := base64.StdEncoding.DecodeString(labels[labelDeclared])
	if err != nil {
		return nil, fmt.Errorf("label %s is not base64: %w", labelDeclared, err)
	}
	if len(packed) == 0 {
		return nil, fmt.Errorf("label %s is missing", labelDeclared)
	}
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxDeclared+1))
	if err != nil {
		return nil, fmt.Errorf("label %s does not unpack: %w", labelDeclared, err)
	}
	if len(raw) > maxDeclared {
		return nil, fmt.Errorf("label %s unpacks to more than %d bytes", labelDeclared, maxDeclared)
	}
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != labels[labelDigest] {
		return nil, fmt.Errorf("label %s does not match label %s", labelDeclared, labelDigest)
	}
	return raw, nil
}

// parseDeclared reads an unpacked declaration.
func parseDeclared(raw []byte) (map[string]planner.Value, error) {
	var values map[string]planner.Value
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, fmt.Errorf("label %s is not a declaration: %w", labelDeclared, err)
	}
	if values == nil {
		return nil, errors.New("label " + labelDeclared + " is null")
	}
	return values, nil
}

// foreignLabels is the normaliser of a row for labels: ours describe the object (one of them holds
// the very row), so they are read apart, and only what is neither ours nor declared is compared.
func foreignLabels(v any) any {
	m, ok := dict(v).(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for k, val := range m {
		switch k {
		case labelSchema, labelProject, labelWorkspace, labelAddress, labelKind, labelDeclared, labelDigest, labelOrigin:
		default:
			out[k] = val
		}
	}
	return out
}

// labelsOf reads the labels of a tree's labels object; values that are no text are not labels.
func labelsOf(v any) map[string]string {
	m, _ := v.(map[string]any)
	out := make(map[string]string, len(m))
	for k, val := range m {
		if s, ok := val.(string); ok && strings.HasPrefix(k, labelPrefix) {
			out[k] = s
		}
	}
	return out
}
