package docker

import (
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// Options for logs that daemon.json has are the engine's to add, and one of them it then refuses itself:
// the message must say where it comes from, since no configuration of sandplan's has it.
func TestLogOptionOfTheDaemonIsNamed(t *testing.T) {
	const said = "logger: max-buffer-size option is only supported with 'mode=non-blocking'"
	p := dockertest.NewProxy(t, dockertest.Socket(t), dockertest.Fault{Call: "^POST /containers/create$", Status: 400, Message: said})
	e := openSocket(t, p.Socket)
	spec := containerSpec{name: unique("sandplan-logs-"), config: hardenedConfig("sha256:"+strings.Repeat("0", 64), nil), host: container.HostConfig{NetworkMode: roleNone}}
	_, err := spec.create(t.Context(), e, nil, nil)
	if err == nil || !strings.Contains(err.Error(), said) || !strings.Contains(err.Error(), "daemon.json") {
		t.Errorf("it ends with %v", err)
	}
}

// Every option that json-file and the engine's own log cache know is sent, so that nothing is added.
func TestEveryLogOptionIsSent(t *testing.T) {
	got := hardenedHost(limits{}, "{}").LogConfig
	for _, name := range []string{"max-size", "max-file", "compress", "mode", "labels", "labels-regex", "env", "env-regex", "tag",
		"cache-disabled", "cache-max-size", "cache-max-file", "cache-compress"} {
		if _, ok := got.Config[name]; !ok {
			t.Errorf("%s of %s is left to daemon.json", name, got.Type)
		}
	}
}
