package docker

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sandplan/sandplan/planner"
	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// Scopes whose sandplan is the same program have one image. None of them may lose it to another one's
// destroy, which finds no container using it while the first container is just being made.
func TestScopesShareTheirImage(t *testing.T) {
	t.Parallel()
	socket := dockertest.Socket(t)
	// Large enough that filling the volume takes a moment: in it the engine holds the container to be for nothing.
	program := buildProgram(t, fmt.Sprintf("package main\n\nimport \"os\"\n\nfunc main() { if len(os.Args) > 99 { println(%q) } }\n",
		fmt.Sprint(t.Name(), os.Getpid(), time.Now().UnixNano())))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			e, err := Open(t.Context(), Options{Host: "unix://" + socket, Getenv: noEnv, Origin: "test:/here", Version: "0.0.0-test",
				Self: program, Who: "tester@test", Now: time.Now})
			if err != nil {
				t.Error(err)
				return
			}
			defer e.Close()
			scope := planner.Scope{Project: unique("dc-shared-image-" + strconv.Itoa(i) + "-"), Workspace: "w"}
			for round := range 5 {
				if err := makeAndRemove(t, e, scope); err != nil {
					t.Errorf("%s, round %d: %v", scope, round, err)
				}
			}
		})
	}
	all.Wait()
}

// makeAndRemove is an apply and a destroy of what a scope has of sandplan.image.
func makeAndRemove(t *testing.T, e *Engine, scope planner.Scope) error {
	ctx := t.Context()
	own, err := e.own()
	if err != nil {
		return err
	}
	if _, err := (desiredTool{own}).create(ctx, e, nil, nil); err != nil {
		return err
	}
	shim := desiredShim{scope: scope, image: own.ID, content: shimContent(own.binary)}
	labels := labelsFor(scope, "test:/here", planner.Resource{Addr: planner.AddrShim, Kind: planner.KindShim})
	id, err := shim.create(ctx, e, labels, nil)
	if err != nil {
		return err
	}
	// What is taken away now is taken away by a removal that began before, and ends at some time.
	for range 5 {
		if _, err := e.imageAt(ctx, own.ID); err != nil {
			t.Errorf("%s has what it applied, and its image is gone: %v", scope, err)
		}
		if err := pause(ctx, settleTime/5); err != nil {
			return err
		}
	}
	v, err := e.inspect(ctx, "/volumes/"+id)
	if err != nil {
		return err
	}
	if err := completeShim(ctx, &look{engine: e, scope: scope}, v); err != nil {
		return err
	}
	if got, want := fmt.Sprint(v["Content"]), fmt.Sprint(shimContent(own.binary)); got != want {
		t.Errorf("the volume of %s holds %s, want %s", scope, got, want)
	}
	if err := removeShim(ctx, e, planner.Object{Addr: planner.AddrShim, ID: id}); err != nil {
		return err
	}
	return removeTool(ctx, e, planner.Object{ID: own.ID})
}
