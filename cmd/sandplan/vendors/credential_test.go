//go:build vendors

package vendors_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandplan/sandplan/testfixtures/vendormock"
)

// credential is one way for a secret to reach a CLI, and how it must arrive on the wire.
type credential struct {
	name   string
	kind   string
	image  string
	block  string
	arrive string
	host   string // that is asked, and no other
}

// credentials are all that a user would have, beside those of the main proof: Claude's token and Codex's
// key from the environment.
var credentials = []credential{
	{"claude_key", "claude", claudeImageVariable, fromEnv("ANTHROPIC_API_KEY", "TEST_CLAUDE_KEY"), "x-api-key " + claudeKey, "api.anthropic.com"},
	{"claude_token_file", "claude", claudeImageVariable, fromFile("CLAUDE_CODE_OAUTH_TOKEN", "token"), "Bearer " + claudeToken, "api.anthropic.com"},
	{"codex_key_file", "codex", codexImageVariable, fromFile("OPENAI_API_KEY", "key"), "Bearer " + openaiKey, "api.openai.com"},
	{"codex_auth", "codex", codexImageVariable, fromFile("auth.json", "auth.json"), "Bearer " + openaiKey, "api.openai.com"},
	{"codex_login", "codex", codexImageVariable, fromFile("auth.json", "login.json"), "Bearer " + loginToken(time.Hour*48), "chatgpt.com"},
	{"codex_login_env", "codex", codexImageVariable, fromEnv("auth.json", "TEST_CODEX_LOGIN"), "Bearer " + loginToken(time.Hour*48), "chatgpt.com"},
}

func fromEnv(name, variable string) string {
	return fmt.Sprintf("credential %q {\n    source_env = %q\n  }", name, variable)
}

func fromFile(name, file string) string {
	return fmt.Sprintf("credential %q {\n    source_file = %q\n  }", name, file)
}

// begun makes tokens that are the same whenever they are made, also when midnight comes in between.
var begun = time.Now()

// loginToken is a token as a ChatGPT login has it, which ends some time from now.
func loginToken(end time.Duration) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	claims := fmt.Sprintf(`{"exp":%d,"email":"a@example.com","https://api.openai.com/auth":`+
		`{"chatgpt_account_id":"account-1","chatgpt_plan_type":"pro","chatgpt_user_id":"user-1"}}`, begun.Add(end).Unix())
	return part(`{"alg":"RS256","typ":"JWT"}`) + "." + part(claims) + "." + part("no signature")
}

// login is the auth.json of a ChatGPT login.
func login(end time.Duration) string {
	token := loginToken(end)
	return fmt.Sprintf(`{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"tokens":{"id_token":%q,"access_token":%q,"refresh_token":"rt-dummy","account_id":"account-1"},"last_refresh":%q}`,
		token, token, time.Now().UTC().Format(time.RFC3339))
}

func (c credential) vendorBlock() string {
	return fmt.Sprintf("\nvendor %q {\n  kind    = %q\n  image   = %q\n  version = %q\n  %s\n}\n", c.name, c.kind, os.Getenv(c.image), versionOf(c.image), c.block)
}

// proveCredential: it arrives as it must, and stands nowhere that anybody could look.
func (w *world) proveCredential(c credential) {
	secret := strings.Fields(c.arrive)[1]
	shown := ""
	e := w.run(c.name, vendormock.Script{Answer: answer, Last: func() { shown = w.everythingShown() }})
	if e.code != 0 || !strings.Contains(e.stdout, answer) {
		w.t.Errorf("it ends with %d\n%s\n%s", e.code, e.stdout, e.stderr)
	}
	if len(w.turns()) == 0 {
		w.t.Error("no model was asked")
	}
	for _, r := range w.mock.Requests() {
		if got := r.Credential(); r.IsTurn() && got != c.arrive {
			w.t.Errorf("the credential arrives as %q, want %q", got, c.arrive)
		}
		if r.Host != c.host {
			w.t.Errorf("%s%s was asked for, only %s is", r.Host, r.Path, c.host)
		}
	}
	_, record := w.lastRecord()
	for what, text := range map[string]string{"the record": record, "the engine": shown, "what sandplan says": e.stdout + e.stderr, "a plan": w.planned()} {
		if text == "" || strings.Contains(text, secret) {
			w.t.Errorf("%s holds the credential, or is empty: %d bytes", what, len(text))
		}
	}
}

// everythingShown is all that the engine shows of the project to whoever may ask it.
func (w *world) everythingShown() string {
	var b strings.Builder
	docker := func(args ...string) string {
		out, err := exec.Command("docker", args...).CombinedOutput()
		if err != nil {
			w.t.Errorf("docker %v: %v\n%s", args, err, out)
		}
		b.Write(out)
		return string(out)
	}
	const mine = "label=dev.sandplan.project=vendors-proof"
	for _, id := range strings.Fields(docker("ps", "-aq", "--filter", mine)) {
		docker("inspect", id)
		docker("logs", id)
	}
	for _, kind := range []string{"network", "volume"} {
		for _, id := range strings.Fields(docker(kind, "ls", "-q", "--filter", mine)) {
			docker(kind, "inspect", id)
		}
	}
	docker("image", "inspect", os.Getenv(claudeImageVariable), os.Getenv(codexImageVariable))
	return b.String()
}

// planned is a saved plan, as it is stored and as it is shown.
func (w *world) planned() string {
	file := filepath.Join(w.t.TempDir(), "plan")
	w.must("plan", "-destroy", "-out="+file)
	raw, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(raw) + w.sandplan(time.Minute, "show", "-json", file).stdout
}

// proveBadCredentials: what cannot work is told before anything starts, what is risky is told and works.
func (w *world) proveBadCredentials(t *testing.T) {
	defer w.write("login.json", login(48*time.Hour))
	for _, c := range []struct {
		name, text string
		mode       os.FileMode
		refused    bool
		says       string
	}{
		{"expired", login(-72 * time.Hour), 0o600, true, "has expired"},
		{"empty", "", 0o600, true, "is empty"},
		{"no login", "{}", 0o600, true, "codex login"},
		{"missing", "-", 0, true, "there is no file"},
		{"readable by others", login(48 * time.Hour), 0o644, false, "mode 0644"},
		{"a login", login(48 * time.Hour), 0o600, false, "ChatGPT login"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := w.in(t)
			file := filepath.Join(w.dir, "login.json")
			w.write("login.json", c.text)
			if err := os.Chmod(file, c.mode); err != nil {
				t.Fatal(err)
			}
			if c.text == "-" {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
			e := w.run("codex_login", vendormock.Script{Answer: answer})
			if !strings.Contains(e.stderr, c.says) {
				t.Errorf("nobody says %q:\n%s", c.says, e.stderr)
			}
			if c.refused && (e.code != 125 || len(w.mock.Requests()) > 0 || strings.Contains(e.stderr, "Proxy is ready")) {
				t.Errorf("it ends with %d after %d requests\n%s", e.code, len(w.mock.Requests()), e.stderr)
			}
			if !c.refused && (e.code != 0 || !strings.Contains(e.stdout, answer)) {
				t.Errorf("it ends with %d\n%s\n%s", e.code, e.stdout, e.stderr)
			}
		})
	}
}
