package machine

import (
	"github.com/sandplan/sandplan/hclspec"
)

// Configuration is what a plan was made from, evaluated: what policies are about and no object shows. Prompts,
// values of environments and sources of credentials are not in it.
type Configuration struct {
	Files       []string              `json:"files"`
	Providers   map[string]docker     `json:"provider_config"`
	Vendors     map[string]vendor     `json:"vendors"`
	Phases      map[string]phase      `json:"phases"`
	Invocations map[string]invocation `json:"invocations"`
}

type docker struct {
	SubnetPool string `json:"subnet_pool"`
}

type vendor struct {
	Kind        string   `json:"kind"`
	Image       string   `json:"image"`
	Version     string   `json:"version,omitempty"`
	Model       string   `json:"model,omitempty"`
	Hosts       []host   `json:"hosts"`
	Credentials []string `json:"credentials"`
	Environment []string `json:"environment"`
}

type host struct {
	Name      string   `json:"name"`
	Port      int      `json:"port"`
	TLS       bool     `json:"tls"`
	Addresses []string `json:"addresses"`
}

type phase struct {
	Base     string            `json:"base"`
	Writable bool              `json:"writable"`
	Tools    []string          `json:"tools"`
	Runners  map[string]runner `json:"runners"`
}

type runner struct {
	Argv    []string `json:"argv"`
	Image   string   `json:"image"`
	Seconds float64  `json:"timeout_seconds"`
}

type invocation struct {
	Vendor      string   `json:"vendor"`
	Phase       string   `json:"phase"`
	Worktree    string   `json:"worktree"`
	Prompt      bool     `json:"declares_prompt"`
	Seconds     float64  `json:"timeout_seconds"`
	Git         string   `json:"git"`
	AfterRun    string   `json:"after_run"`
	User        string   `json:"user,omitempty"`
	Environment []string `json:"environment"`
}

// NewConfiguration is the configuration of a plan.
func NewConfiguration(s *hclspec.Spec) Configuration {
	c := Configuration{
		Files: append([]string{}, s.Scope.Configs...), Providers: map[string]docker{},
		Vendors: map[string]vendor{}, Phases: map[string]phase{}, Invocations: map[string]invocation{},
	}
	if pool := s.Provider.SubnetPool.V; pool.IsValid() { // a destruction needs no configuration that says one
		c.Providers[provider] = docker{pool.String()}
	}
	for _, v := range s.Vendors {
		out := vendor{Kind: v.Kind.V, Image: v.Image.V, Version: v.Version.V, Model: v.Model.V, Hosts: []host{}, Credentials: []string{}, Environment: envNames(v.Env)}
		for _, h := range v.Hosts {
			one := host{Name: h.Name, Port: h.Port.V, TLS: h.TLS.V, Addresses: []string{}}
			for _, a := range h.Addresses.V {
				one.Addresses = append(one.Addresses, a.String())
			}
			out.Hosts = append(out.Hosts, one)
		}
		for _, cr := range v.Credentials {
			out.Credentials = append(out.Credentials, cr.Name)
		}
		c.Vendors[v.Name] = out
	}
	for _, p := range s.Phases {
		out := phase{Base: p.Base.V, Writable: p.Writable.V, Tools: append([]string{}, p.Tools.V...), Runners: map[string]runner{}}
		for _, r := range p.Runners {
			out.Runners[r.Name] = runner{Argv: r.Argv.V, Image: r.Image.V, Seconds: r.Timeout.V.Seconds()}
		}
		c.Phases[p.Name] = out
	}
	for _, i := range s.Invocations {
		c.Invocations[i.Address] = invocation{Vendor: i.Vendor.V, Phase: i.Phase.V, Worktree: i.Worktree.V, Prompt: i.Prompt.Set,
			Seconds: i.Timeout.V.Seconds(), Git: i.Git.V, AfterRun: i.AfterRun.V, User: i.User.V, Environment: envNames(i.Env)}
	}
	return c
}

func envNames(all []hclspec.EnvVar) []string {
	out := []string{}
	for _, e := range all {
		out = append(out, e.Name)
	}
	return out
}

// Check is what came of a check block, in the form that policy tools know.
type Check struct {
	Address   checkAddress    `json:"address"`
	Status    string          `json:"status"`
	Instances []checkInstance `json:"instances"`
}

type checkAddress struct {
	Display string `json:"to_display"`
	Kind    string `json:"kind,omitempty"`
	Name    string `json:"name,omitempty"`
}

type checkInstance struct {
	Address  checkAddress   `json:"address"`
	Status   string         `json:"status"`
	Problems []checkProblem `json:"problems,omitempty"`
}

type checkProblem struct {
	Message string `json:"message"`
}

// NewChecks are the checks of a configuration.
func NewChecks(results []hclspec.CheckResult) []Check {
	out := []Check{}
	for _, r := range results {
		at := checkAddress{Display: "check." + r.Name, Kind: "check", Name: r.Name}
		one := checkInstance{Address: checkAddress{Display: at.Display}, Status: string(r.State)}
		for _, p := range r.Problems {
			one.Problems = append(one.Problems, checkProblem{p})
		}
		out = append(out, Check{Address: at, Status: one.Status, Instances: []checkInstance{one}})
	}
	return out
}
