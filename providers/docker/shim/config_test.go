package shim

import (
	"reflect"
	"strings"
	"testing"
)

func goodConfig() Config {
	return Config{
		Invocation: "invocation.a", Argv: []string{"/agent"}, Env: []string{"A=<1>"}, Dir: "/work", UID: 7, GID: 7,
		Mounts:  []Mount{{Path: "/work", Type: MountBind}, {Path: "/run/sandplan", Type: MountTmpfs}, {Path: "/ro", Type: MountTmpfs, ReadOnly: true}},
		Network: &Network{Address: "10.0.0.3/29", Proxy: "10.0.0.2:3128", Hosts: []string{"a:443"}, Refused: "b:443", Direct: []string{"1.1.1.1:443"}},
		Bounds:  Bounds{TimeoutMS: 1, GraceMS: 1, SilenceMS: 1, Output: 1},
	}
}

// The argument is compared with what inspect shows: equal declarations must give equal bytes, and
// reading them back must lose nothing.
func TestArgRoundTrip(t *testing.T) {
	c := goodConfig()
	arg, err := c.Arg()
	if err != nil {
		t.Fatal(err)
	}
	back, err := parseConfig(arg)
	if err != nil || !reflect.DeepEqual(*back, c) {
		t.Fatalf("%+v, %v; want %+v", back, err, c)
	}
	if again, err := back.Arg(); err != nil || again != arg || !strings.Contains(arg, "A=<1>") || strings.Contains(arg, "\n") {
		t.Errorf("%s\n%s\n%v", arg, again, err)
	}
}

func TestConfigIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(c *Config)
		want   string
		reason string
	}{
		"no command":        {func(c *Config) { c.Argv = nil }, "no command", "there is nothing to run"},
		"empty command":     {func(c *Config) { c.Argv = []string{""} }, "no command", "the same"},
		"relative dir":      {func(c *Config) { c.Dir = "work" }, "not absolute", "relative to what"},
		"negative user":     {func(c *Config) { c.UID = -1 }, "user -1:7", "setresuid takes it for: leave as it is"},
		"no timeout":        {func(c *Config) { c.Bounds.TimeoutMS = 0 }, "must be above zero", "an agent for ever"},
		"no output bound":   {func(c *Config) { c.Bounds.Output = 0 }, "must be above zero", "logs fill the disk"},
		"no silence":        {func(c *Config) { c.Bounds.SilenceMS = 0 }, "must be above zero", "a lease without end"},
		"env":               {func(c *Config) { c.Env = []string{"A"} }, "is not NAME=value", "the container would give it another value"},
		"env with NUL":      {func(c *Config) { c.Env = []string{"A=\x00B=1"} }, "is not NAME=value", "execve sees something else"},
		"mount twice":       {func(c *Config) { c.Mounts = append(c.Mounts, c.Mounts[0]) }, "declared twice", "one hides the other"},
		"mount unclean":     {func(c *Config) { c.Mounts[0].Path = "/work/" }, "not a clean", "the kernel spells it otherwise"},
		"mount root":        {func(c *Config) { c.Mounts[0].Path = "/" }, "not a clean", "the image is the root"},
		"mount type":        {func(c *Config) { c.Mounts[0].Type = "nfs" }, "unknown type", "nobody checks it"},
		"file in worktree":  {func(c *Config) { c.Files = []File{{Path: "/work/x"}} }, "no writable tmpfs", "it would stay on the host"},
		"file on read-only": {func(c *Config) { c.Files = []File{{Path: "/ro/x"}} }, "no writable tmpfs", "it cannot be written"},
		"file unclean":      {func(c *Config) { c.Files = []File{{Path: "/run/sandplan/../x"}} }, "not a clean", "elsewhere"},
		"credential nowhere": {func(c *Config) { c.Credentials = []Credential{{Name: "K"}} }, "exactly one of env and path",
			"it would be lost"},
		"credential twice": {func(c *Config) { c.Credentials = []Credential{{Name: "K", Env: "K", Path: "/run/sandplan/k"}} }, "exactly one of env and path",
			"twice as easy to find"},
		"credential on disk": {func(c *Config) { c.Credentials = []Credential{{Name: "K", Path: "/work/k"}} }, "no writable tmpfs", "a secret on the host's disk"},
		"address":            {func(c *Config) { c.Network.Address = "10.0.0.3" }, "network address", "no network length"},
		"proxy elsewhere":    {func(c *Config) { c.Network.Proxy = "10.0.0.9:3128" }, "is no neighbour", "not on this network"},
		"proxy is itself":    {func(c *Config) { c.Network.Proxy = "10.0.0.3:3128" }, "is no neighbour", "its own proxy"},
		"nothing to reach":   {func(c *Config) { c.Network.Hosts = nil }, "proves nothing", "a dead network looks like a closed one"},
		"nothing refused":    {func(c *Config) { c.Network.Refused = "" }, "proves nothing", "an open proxy looks like the right one"},
		"direct":             {func(c *Config) { c.Network.Direct = []string{"example.com:443"} }, "direct", "it would need a lookup"},
	} {
		cfg := goodConfig()
		c.do(&cfg)
		if _, err := cfg.Arg(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q (%s)", name, err, c.want, c.reason)
		}
	}
	cfg := goodConfig()
	good, _ := cfg.Arg()
	for arg, reason := range map[string]string{
		strings.Replace(good, `"uid"`, `"uuid"`, 1): "a key that nobody knows",
		good + "{}":        "something follows",
		good[:len(good)-1]: "cut",
		"":                 "nothing",
	} {
		if _, err := parseConfig(arg); err == nil {
			t.Errorf("accepted: %s", reason)
		}
	}
}
