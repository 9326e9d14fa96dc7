package docker

import (
	"errors"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestDumpAsksAgain(t *testing.T) {
	broken := errors.New("broken")
	for _, tc := range []struct {
		reason string
		errs   []error // one after the other, the last for ever
		want   error
		calls  int
	}{
		{"nothing changed meanwhile", []error{nil}, nil, 1},
		{"something did, twice", []error{netlink.ErrDumpInterrupted, netlink.ErrDumpInterrupted, nil}, nil, 3},
		{"something always does", []error{netlink.ErrDumpInterrupted}, netlink.ErrDumpInterrupted, 50},
		{"another failure", []error{broken}, broken, 1},
	} {
		calls := 0
		got, err := dump(func() ([]int, error) {
			calls++
			return []int{calls}, tc.errs[min(calls, len(tc.errs))-1]
		})
		if !errors.Is(err, tc.want) || calls != tc.calls || len(got) != 1 || got[0] != calls {
			t.Errorf("%s: %v, %v after %d calls", tc.reason, got, err, calls)
		}
	}
}
