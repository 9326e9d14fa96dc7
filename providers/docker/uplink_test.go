package docker

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/planner"
)

// filtering is a machine whose setting for frames between containers of one bridge is this text, or none.
type filtering struct {
	Kernel
	text string
}

func (f filtering) Setting(path string) (string, error) {
	switch {
	case path != netfilterPath:
		return f.Kernel.Setting(path)
	case f.text == "":
		return "", fs.ErrNotExist
	}
	return f.text, nil
}

// TestUplinkNeedsBridgeNetfilter: where containers of one bridge reach each other whatever the engine's rules are, no
// uplink is made for proxies, and whoever wants one hears what to do.
func TestUplinkNeedsBridgeNetfilter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text, found string
	}{
		{"off", "0\n", "is 0"},
		{"not loaded", "", "is missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := openEngine(t)
			e.options.Kernel = filtering{e.options.Kernel, tt.text}
			s := testScope(t, e)
			up := testUplink(s, 7)
			o, err := e.create(t.Context(), s, resourceOf(t, e, planner.KindUplink, planner.AddrUplink, up), up, nil)
			if err == nil {
				t.Fatal("an uplink is made where nothing keeps its containers apart")
			}
			for _, must := range []string{"bridge netfilter is off", netfilterPath + " " + tt.found, `"modprobe br_netfilter"`, `"sysctl -w net.bridge.bridge-nf-call-iptables=1"`} {
				if !strings.Contains(err.Error(), must) {
					t.Errorf("%q does not say %q", err, must)
				}
			}
			if o.ID == "" || o.Addr != planner.AddrUplink {
				t.Errorf("the network that is there by then is not told, so that nobody can remove it: %+v", o)
			}
		})
	}
}
