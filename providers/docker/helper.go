package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/sandplan/sandplan/planner"
)

// The helper is a container of sandplan.image that lives for a moment, sets what only the engine's
// network namespace can set, and is removed. It is the one container of ours with a capability.

// kindHelper marks helpers by label. One that a look finds was left behind by a crash, or somebody works with it at
// this moment: whose it is its labels tell as those of a lock do.
const kindHelper planner.Kind = "helper"

// helperLabels are the labels of a helper of this process.
func (e *Engine) helperLabels(scope planner.Scope, a planner.Address) (map[string]string, error) {
	by, err := thisProcess("/proc", e.options)
	if err != nil {
		return nil, fmt.Errorf("make a helper for %s: %w", scope, err)
	}
	by.Operation, by.Created = string(kindHelper), e.options.Now()
	return lockLabels(scope, a, kindHelper, by), nil
}

// isInUse reports whether a container, shown in full, is a helper whose maker certainly lives.
func (l *look) isInUse(k *kind, v tree) bool {
	if k.name != kindHelper {
		return false
	}
	by := readLock(treeID(v), labelsOf(treeLabels(v)))
	self, err := thisProcess("/proc", l.engine.options)
	// Of a process that cannot be seen from here nothing is certain, and such a helper is told.
	return err == nil && by.PID > 0 && by.BootID == self.BootID && by.PIDNS == self.PIDNS && !isDead("/proc", self, by)
}

// bridgeOrder is what the hidden subcommand "bridge" is told.
type bridgeOrder struct {
	Bridge   string            `json:"bridge"`
	Settings map[string]string `json:"settings"`
}

// setBridgeFromHelper runs "sandplan bridge" on the engine's host network.
func (e *Engine) setBridgeFromHelper(ctx context.Context, bridge string, owner identity) error {
	own, err := e.own()
	if err != nil {
		return err
	}
	labels, err := e.helperLabels(owner.scope, owner.address)
	if err != nil {
		return err
	}
	config, host := helperConfig(own.ID, bridge, labels)
	name := objectName(owner.scope, owner.address, "helper")
	id, err := createFrom(ctx, e.cli, own, func() (string, error) {
		made, err := e.cli.ContainerCreate(ctx, config, host, nil, nil, name)
		return made.ID, err
	})
	if err != nil {
		return fmt.Errorf("create helper %s: %w", name, err)
	}
	// A helper must go even when the command is interrupted.
	defer func() {
		_ = e.cli.ContainerRemove(context.WithoutCancel(ctx), id, container.RemoveOptions{Force: true})
	}()
	ended, failed := e.cli.ContainerWait(ctx, id, container.WaitConditionNextExit)
	if err := e.cli.ContainerStart(ctx, id, container.StartOptions{}); err != nil {
		return fmt.Errorf("start helper %s: %w", name, err)
	}
	select {
	case err := <-failed:
		return fmt.Errorf("wait for helper %s: %w", name, err)
	case result := <-ended:
		if result.StatusCode != 0 {
			return fmt.Errorf("helper %s ended with %d: %s", name, result.StatusCode, e.helperWords(ctx, id))
		}
	}
	return nil
}

func helperConfig(image, bridge string, labels map[string]string) (*container.Config, *container.HostConfig) {
	settings := map[string]string{}
	for _, s := range bridgeSettings() {
		settings[s.name] = s.value
	}
	order, err := json.Marshal(bridgeOrder{Bridge: bridge, Settings: settings})
	if err != nil {
		panic(fmt.Sprintf("order without a JSON form: %v", err))
	}
	pids := int64(32)
	return &container.Config{
			Image:      image,
			Entrypoint: []string{"/.sandplan/sandplan"},
			Cmd:        []string{"bridge", string(order)},
			User:       "0:0", // /proc/sys/net belongs to root
			Labels:     labels,
		}, &container.HostConfig{
			NetworkMode: "host",
			CapDrop:     []string{"ALL"},
			CapAdd:      []string{"NET_ADMIN"},
			SecurityOpt: []string{"no-new-privileges"},
			// /proc/sys is among the read-only paths; Privileged would lift that too, and does not start
			// where the engine itself lacks a capability.
			MaskedPaths:    []string{},
			ReadonlyPaths:  []string{},
			ReadonlyRootfs: true,
			RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
			LogConfig:      container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "64k", "max-file": "1"}},
			Resources:      container.Resources{Memory: 128 << 20, MemorySwap: 128 << 20, PidsLimit: &pids},
		}
}

// helperWords are the last words of a helper that failed.
func (e *Engine) helperWords(ctx context.Context, id string) string {
	logs, err := e.cli.ContainerLogs(ctx, id, container.LogsOptions{ShowStderr: true, Tail: "5"})
	if err != nil {
		return fmt.Sprintf("its output cannot be read: %v", err)
	}
	defer logs.Close()
	var out bytes.Buffer
	if _, err := stdcopy.StdCopy(io.Discard, &out, io.LimitReader(logs, 64<<10)); err != nil {
		return fmt.Sprintf("its output cannot be read: %v", err)
	}
	return strings.TrimSpace(out.String())
}

// BridgeMain is the hidden subcommand "bridge": it runs inside a helper, as root in the engine's
// network namespace, and does one thing only.
func BridgeMain(args []string, _ io.Reader, _, stderr io.Writer) int {
	if err := obeyBridgeOrder(args); err != nil {
		fmt.Fprintf(stderr, "sandplan bridge: %v\n", err)
		return 1
	}
	return 0
}

func obeyBridgeOrder(args []string) error {
	if len(args) != 1 {
		return errors.New("internal command; it takes one JSON argument")
	}
	var order bridgeOrder
	if err := json.Unmarshal([]byte(args[0]), &order); err != nil {
		return fmt.Errorf("its argument is not JSON: %w", err)
	}
	if !ownBridge.MatchString(order.Bridge) {
		return fmt.Errorf("%q is not a bridge of sandplan's", order.Bridge)
	}
	for _, name := range sortedKeys(order.Settings) {
		value := order.Settings[name]
		if !slices.ContainsFunc(bridgeSettings(), func(s setting) bool { return s.name == name && s.value == value }) {
			return fmt.Errorf("%s=%s is not a setting that sandplan makes", name, value)
		}
	}
	return writeSettings(thisKernel{}, order.Bridge)
}

// helperKind exists so that helpers which a crash left behind are found and removed.
func helperKind() kind {
	return kind{
		name:     kindHelper,
		table:    newTable(nil, nil),
		list:     listContainers,
		leftover: true,
		remove:   removeContainer,
	}
}
