package verify

import (
	"testing"

	"github.com/sandplan/sandplan/hclspec"
)

// TestAttemptsHaveRoom: a declaration that lets few tunnels through must not make attempts look held; whatever
// else bounds the agent stays as it is declared.
func TestAttemptsHaveRoom(t *testing.T) {
	val := func(n int64) hclspec.Val[int64] { return hclspec.Val[int64]{V: n} }
	subject := hclspec.Invocation{Name: "a", Address: "invocation.a", Limits: hclspec.Limits{
		Memory: val(1), PIDs: val(2), Output: val(3), Upload: val(4), Download: val(5), Tunnels: val(3), TunnelsPerSecond: val(1000)}}
	spec, second := derive(&hclspec.Spec{Invocations: []hclspec.Invocation{subject}}, []hclspec.Invocation{subject}, "verify-1", "/tree")
	want := subject.Limits
	want.Download, want.Tunnels = val(hclspec.NoBound), val(256)
	for _, inv := range append(spec.Invocations, second) {
		if inv.Limits != want {
			t.Errorf("%s: %+v, want %+v", inv.Address, inv.Limits, want)
		}
	}
	if subject.Limits.Tunnels.V != 3 {
		t.Error("the declaration itself was changed")
	}
}
