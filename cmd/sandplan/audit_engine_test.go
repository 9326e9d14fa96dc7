package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/providers/docker/dockertest"
)

// audited is a project on the real engine, seen through a proxy that remembers every call.
type auditedProject struct {
	t       *testing.T
	bin     string
	dir     string
	proxy   *dockertest.Proxy
	project string
}

func newAuditedProject(t *testing.T, project, pool string) *auditedProject {
	t.Helper()
	socket := dockertest.Socket(t)
	p := &auditedProject{t: t, bin: build(t), dir: t.TempDir(), project: project, proxy: dockertest.NewProxy(t, socket)}
	tag := "sandplan-test/" + project + ":1"
	loadAgent(t, socket, filepath.Join(p.bin, "agent"), tag)
	tree := filepath.Join(p.dir, "tree")
	if err := os.MkdirAll(filepath.Join(tree, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.write(strings.NewReplacer("PROJECT", project, "POOL", pool, "IMAGE", tag, "TREE", tree).Replace(`sandplan {
  project = "PROJECT"
}
provider "docker" {
  subnet_pool = "POOL"
}
vendor "local" {
  kind    = "custom"
  image   = "IMAGE"
  command = ["/agent"]
  credential "token" {
    source_env = "AUDIT_TOKEN"
  }
  host "vendor.example" {
    addresses = ["10.99.1.1"]
  }
}
invocation "a" {
  vendor   = vendor.local
  phase    = phase.review
  worktree = "TREE"
  user     = "65532:65532"
  prompt   = "audit-prompt"
  limits {
    pids = 100
  }
}
`))
	clean := func() { p.do("destroy", "-project="+project, "-auto-approve", "-lock-timeout=60s") }
	clean()
	t.Cleanup(clean)
	p.must(0, "init")
	p.must(0, "apply", "-auto-approve")
	return p
}

func (p *auditedProject) write(config string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, "sandplan.hcl"), []byte(config), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *auditedProject) edit(from, to string) {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "sandplan.hcl"))
	if err != nil {
		p.t.Fatal(err)
	}
	changed := strings.Replace(string(text), from, to, 1)
	if changed == string(text) {
		p.t.Fatalf("the configuration has no %q", from)
	}
	p.write(changed)
}

// do runs a command on the engine behind the proxy.
func (p *auditedProject) do(args ...string) (code int, stdout, stderr string) {
	p.t.Helper()
	cmd := exec.Command(filepath.Join(p.bin, "sandplan"), args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+p.proxy.Socket, "SANDPLAN_IN_AUTOMATION=1", "AUDIT_TOKEN=audit-secret", "OTHER_TOKEN=other-secret")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	return codeOf(cmd.Run()), out.String(), errs.String()
}

func (p *auditedProject) must(code int, args ...string) string {
	p.t.Helper()
	got, stdout, stderr := p.do(args...)
	if got != code {
		p.t.Fatalf("sandplan %s: code %d, want %d\n%s%s", strings.Join(args, " "), got, code, stdout, stderr)
	}
	return stdout
}

var readingCall = regexp.MustCompile(`^(GET|HEAD) `)

// TestAuditOnTheEngine: what drift reports of a real engine, in every format, and that nothing of it wrote.
func TestAuditOnTheEngine(t *testing.T) {
	t.Parallel()
	p := newAuditedProject(t, "ciaudit", "10.229.48.0/20")
	before := len(p.proxy.Calls())
	formats := []string{"text", "json", "sarif", "junit", "markdown"}
	clean := map[string]string{}
	for _, f := range formats {
		clean[f] = p.must(0, "drift", "-format="+f)
		if again := p.must(0, "drift", "-format="+f); again != clean[f] {
			t.Errorf("%s: two audits of the same state differ:\n%s\n%s", f, clean[f], again)
		}
	}
	p.must(0, "drift", "-recorded", "-project=ciaudit")
	if doc := p.must(0, "drift", "-recorded", "-project=ciadit", "-format=sarif"); !strings.Contains(doc, "has nothing of ciadit/default") {
		t.Errorf("a project that nobody has passes for a clean one:\n%s", doc)
	}
	snap := filepath.Join(p.dir, "clean.snap")
	p.must(0, "snapshot", "-out="+snap)

	// The declaration changes: pending, and not drift.
	p.edit("pids = 100", "pids = 101")
	p.must(3, "drift")
	if doc := p.must(3, "drift", "-format=json"); !strings.Contains(doc, `"verdict":"pending"`) || !strings.Contains(doc, `"kind":"pending"`) {
		t.Errorf("a changed declaration: %s", doc)
	}
	p.must(0, "drift", "-ignore=invocation.a.limits.pids")
	p.must(0, "drift", "-recorded")
	p.must(0, "plan", "-deny-widening=false")
	if code, _, stderr := p.do("plan", "-deny-widening"); code != 1 || !strings.Contains(stderr, "limits.pids: 100 -> 101") {
		t.Errorf("more processes than the engine's objects declare: code %d\n%s", code, stderr)
	}
	p.edit("pids = 101", "pids = 99")
	p.must(0, "plan", "-deny-widening")
	p.edit("pids = 99", "pids = 100")

	// The secret from another place is another declaration.
	p.edit(`"AUDIT_TOKEN"`, `"OTHER_TOKEN"`)
	p.must(3, "drift")
	if code, _, stderr := p.do("plan", "-deny-widening"); code != 1 || !strings.Contains(stderr, "credentials: token as") {
		t.Errorf("another source of a credential: code %d\n%s", code, stderr)
	}
	p.edit(`"OTHER_TOKEN"`, `"AUDIT_TOKEN"`)

	p.tamper()
	tampered := filepath.Join(p.dir, "tampered.snap")
	p.must(0, "snapshot", "-out="+tampered)

	// All of that only read.
	for _, call := range p.proxy.Calls()[before:] {
		if !readingCall.MatchString(call) || strings.Contains(call, "/attach") {
			t.Errorf("an audit made the call %s", call)
		}
	}
	if n := len(p.proxy.Calls()) - before; n < 100 {
		t.Errorf("only %d calls went through the proxy", n)
	}
	p.snapshots(snap, tampered, clean)
	p.otherSecret()
}

// otherSecret: no run hands out a secret from another place before somebody has planned and applied that.
func (p *auditedProject) otherSecret() {
	p.t.Helper()
	p.must(0, "apply", "-auto-approve")
	p.edit(`"AUDIT_TOKEN"`, `"OTHER_TOKEN"`)
	for _, args := range [][]string{{"run", "invocation.a"}, {"run", "-apply", "invocation.a"}} {
		if code, _, stderr := p.do(args...); code != exitRefused || !strings.Contains(stderr, "credential") {
			p.t.Errorf("%s with another source of a credential: code %d\n%s", strings.Join(args, " "), code, stderr)
		}
	}
}

// tamper raises a limit behind sandplan's back, and looks at it in every format.
func (p *auditedProject) tamper() {
	p.t.Helper()
	agent := p.container("invocation.a.agent")
	if out, err := exec.Command("docker", "update", "--pids-limit=4000", agent).CombinedOutput(); err != nil {
		p.t.Fatalf("docker update: %v\n%s", err, out)
	}
	p.must(2, "drift")
	p.must(2, "drift", "-recorded", "-project=ciaudit")
	p.must(0, "drift", "-ignore=invocation.a.agent.HostConfig.PidsLimit")
	sarif := p.must(2, "drift", "-format=sarif")
	var log struct {
		Runs []struct {
			Results []struct {
				RuleID    string
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(sarif), &log); err != nil || len(log.Runs[0].Results) != 1 {
		p.t.Fatalf("%v\n%s", err, sarif)
	}
	r := log.Runs[0].Results[0]
	config, _ := os.ReadFile(filepath.Join(p.dir, "sandplan.hcl"))
	line := strings.Split(string(config), "\n")[r.Locations[0].PhysicalLocation.Region.StartLine-1]
	if r.RuleID != "sandplan.drift.replace" || r.Locations[0].PhysicalLocation.ArtifactLocation.URI != "sandplan.hcl" || !strings.Contains(line, "pids = 100") {
		p.t.Errorf("the result stands at %q: %+v", line, r)
	}
	if x := p.must(2, "drift", "-format=junit"); !strings.Contains(x, `<failure message="limits.pids`) {
		p.t.Errorf("%s", x)
	}
	if m := p.must(2, "drift", "-format=markdown"); !strings.Contains(m, "1 object was changed") {
		p.t.Errorf("%s", m)
	}
}

// snapshots: a file stands in place of the engine, with the same result.
func (p *auditedProject) snapshots(snap, tampered string, clean map[string]string) {
	p.t.Helper()
	calls := len(p.proxy.Calls())
	for _, f := range []string{"sarif", "junit", "json"} {
		got := p.must(0, "drift", "-format="+f, "-engine="+snap)
		taken := regexp.MustCompile(`,?\s*"snapshot_?[tT]aken": ?"[^"]*",?`)
		plain := regexp.MustCompile(`[\s,]`)
		if plain.ReplaceAllString(taken.ReplaceAllString(got, ""), "") != plain.ReplaceAllString(clean[f], "") {
			p.t.Errorf("%s of a snapshot differs from that of the engine:\n%s\n%s", f, got, clean[f])
		}
	}
	p.must(2, "drift", "-engine="+tampered)
	p.must(2, "drift", "-recorded", "-engine="+tampered)
	p.must(0, "plan", "-detailed-exitcode", "-engine="+snap)
	p.must(2, "plan", "-detailed-exitcode", "-engine="+tampered)
	p.edit("pids = 100", "pids = 500")
	p.must(3, "drift", "-engine="+snap)
	if code, _, stderr := p.do("plan", "-deny-widening", "-engine="+snap); code != 1 || !strings.Contains(stderr, "limits.pids") {
		p.t.Errorf("-deny-widening against a snapshot: code %d\n%s", code, stderr)
	}
	p.edit("pids = 500", "pids = 100")
	if code, _, stderr := p.do("drift", "-engine="+snap, "-workspace=other"); code != 1 || !strings.Contains(stderr, "he snapshot is of ciaudit/default") {
		p.t.Errorf("a snapshot of another scope: code %d\n%s", code, stderr)
	}
	if code, stdout, _ := p.do("drift", "-format=json", "-engine="+filepath.Join(p.dir, "sandplan.hcl")); code != 1 || !strings.Contains(stdout, `"verdict":"error"`) {
		p.t.Errorf("what is no snapshot: code %d\n%s", code, stdout)
	}
	if n := len(p.proxy.Calls()) - calls; n != 0 {
		p.t.Errorf("%d calls to the engine with -engine", n)
	}
	held, err := exec.Command("gzip", "-dc", snap).Output()
	if err != nil || !bytes.Contains(held, []byte("ciaudit")) {
		p.t.Errorf("the snapshot cannot be read: %v", err)
	}
	for _, secret := range []string{"audit-secret", "audit-prompt", "AUDIT_TOKEN"} {
		if bytes.Contains(held, []byte(secret)) {
			p.t.Errorf("the snapshot holds %s", secret)
		}
	}
}

func (p *auditedProject) container(address string) string {
	p.t.Helper()
	out, err := exec.Command("docker", "ps", "-aq", "--filter", "label=dev.sandplan.address="+address, "--filter", "label=dev.sandplan.project="+p.project).Output()
	ids := strings.Fields(string(out))
	if err != nil || len(ids) != 1 {
		p.t.Fatalf("containers of %s: %q (%v)", address, ids, err)
	}
	return ids[0]
}

// TestAuditErrors: whatever goes wrong is an error in every format, and never clean.
func TestAuditErrors(t *testing.T) {
	t.Parallel()
	p := newAuditedProject(t, "cierrors", "10.229.64.0/20")
	agent := p.container("invocation.a.agent")
	engine := p.proxy
	defer func() { p.proxy = engine }()
	inspect := `^GET /containers/` + agent + `.*/json$`
	without := func(part string) dockertest.Fault {
		return dockertest.Fault{Call: inspect, Edit: func(body any) any { delete(body.(map[string]any), part); return body }}
	}
	for _, tt := range []struct {
		faults []dockertest.Fault
		args   []string
		never  string
		reason string
	}{
		{[]dockertest.Fault{{Call: `^GET /_ping$`, Cut: true}}, []string{"-format=junit"}, `errors="0"`, "the engine does not answer"},
		{[]dockertest.Fault{{Call: `^GET /info$`, Status: 403, Message: "authorization denied by plugin"}}, []string{"-format=json"}, `"verdict":"clean"`, "a plugin forbids to look"},
		{[]dockertest.Fault{{Call: `^GET /networks$`, Status: 500, Message: "no"}}, []string{"-format=markdown"}, "No drift", "one list is missing"},
		{[]dockertest.Fault{{Call: `^GET /containers/json$`, Half: true}}, []string{"-format=junit"}, `errors="0"`, "one list breaks off"},
		{[]dockertest.Fault{{Call: `^GET /volumes$`, Edit: func(any) any { return map[string]any{} }}}, []string{"-recorded"}, "No drift", "one list is no list"},
		{[]dockertest.Fault{{Call: inspect, Status: 500, Message: "layer not known"}}, []string{"-format=sarif"}, `"executionSuccessful": true`, "one object cannot be read"},
		{[]dockertest.Fault{{Call: inspect, Status: 403, Message: "forbidden"}}, []string{"-ignore=invocation.a.agent.inspect"}, "No drift", "one object must not be read, and cannot be ignored"},
		{[]dockertest.Fault{{Call: inspect, Status: 403, Message: "forbidden"}}, []string{"-recorded"}, "No drift", "the same without configuration"},
		{[]dockertest.Fault{{Call: inspect, Half: true}}, []string{"-format=sarif"}, `"executionSuccessful": true`, "one object breaks off"},
		{[]dockertest.Fault{without("HostConfig")}, nil, "No drift", "one object without its main part"},
		{[]dockertest.Fault{without("State")}, []string{"-format=json"}, `"verdict":"clean"`, "one object of which nobody knows whether it runs"},
		{[]dockertest.Fault{without("Config")}, []string{"-recorded"}, "No drift", "one object without its labels, with which it is listed"},
		{[]dockertest.Fault{{Call: `^GET /images/`, Status: 403, Message: "forbidden"}}, []string{"-format=sarif"}, `"executionSuccessful": true`, "the images must not be read"},
	} {
		p.proxy = dockertest.NewProxy(t, dockertest.Socket(t), tt.faults...)
		code, stdout, stderr := p.do(append([]string{"drift"}, tt.args...)...)
		if code != 1 || strings.Contains(stdout, tt.never) {
			t.Errorf("%s: code %d, want 1\n%s%s", tt.reason, code, stdout, stderr)
		}
		if len(tt.args) == 1 && strings.HasPrefix(tt.args[0], "-format") && stdout == "" {
			t.Errorf("%s: there is no report\n%s", tt.reason, stderr)
		}
	}
}
