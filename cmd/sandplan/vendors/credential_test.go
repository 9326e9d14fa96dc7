//go:build vendors

package vendors_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	if !strings.Contains(shown, "invocation."+c.name+".agent") {
		w.t.Error("the engine was not asked for the agent")
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
		if err != nil && !strings.Contains(string(out), "No such") { // the scope's lock is given back while the CLI begins
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

// badCredential is a secret that cannot work, or is risky, in one of the ways to give it: in a file of the
// configuration's directory, or in a variable.
type badCredential struct {
	name, invocation, file, variable string

	text    string // "-" is none at all
	mode    os.FileMode
	refused bool
	says    string
}

func badCredentials() []badCredential {
	const token, key, auth, authEnv = "claude_token_file", "codex_key_file", "codex_login", "codex_login_env"
	far, past := login(48*time.Hour), login(-72*time.Hour)
	return []badCredential{
		{"Claude's token is missing", "claude_questions", "", "TEST_CLAUDE_TOKEN", "-", 0, true, "TEST_CLAUDE_TOKEN is not set"},
		{"Claude's token is empty", "claude_questions", "", "TEST_CLAUDE_TOKEN", "", 0, true, "is empty"},
		{"Claude's token is blank", "claude_questions", "", "TEST_CLAUDE_TOKEN", " \n", 0, true, "is empty"},
		{"Claude's token is a key", "claude_questions", "", "TEST_CLAUDE_TOKEN", claudeKey, 0, true, `name the credential "ANTHROPIC_API_KEY"`},
		{"Claude's token is two words", "claude_questions", "", "TEST_CLAUDE_TOKEN", "Bearer " + claudeToken, 0, true, "a token is one word"},
		{"the file of Claude's token is missing", token, "token", "", "-", 0, true, "there is no file"},
		{"the file of Claude's token is empty", token, "token", "", "\n", 0o600, true, "is empty"},
		{"the file of Claude's token is the CLI's own", token, "token", "", `{"claudeAiOauth":{}}`, 0o600, true, "claude setup-token"},
		{"the file of Claude's token is readable by others", token, "token", "", claudeToken, 0o640, false, "mode 0640"},
		{"Claude's key is missing", "claude_key", "", "TEST_CLAUDE_KEY", "-", 0, true, "TEST_CLAUDE_KEY is not set"},
		{"Claude's key is a token", "claude_key", "", "TEST_CLAUDE_KEY", claudeToken, 0, true, `name the credential "CLAUDE_CODE_OAUTH_TOKEN"`},
		{"Codex's key is missing", "codex_questions", "", "TEST_OPENAI_KEY", "-", 0, true, "TEST_OPENAI_KEY is not set"},
		{"the file of Codex's key is empty", key, "key", "", "", 0o600, true, "is empty"},
		{"the file of Codex's key is an auth.json", key, "key", "", far, 0o600, true, `name the credential "auth.json"`},
		{"the file of Codex's key is readable by others", key, "key", "", openaiKey, 0o604, false, "mode 0604"},
		{"Codex's auth.json is missing", auth, "login.json", "", "-", 0, true, "there is no file"},
		{"Codex's auth.json is empty", auth, "login.json", "", "", 0o600, true, "is empty"},
		{"Codex's auth.json holds no login", auth, "login.json", "", "{}", 0o600, true, "codex login"},
		{"Codex's auth.json is no JSON", auth, "login.json", "", openaiKey, 0o600, true, "codex login"},
		{"Codex's auth.json has expired", auth, "login.json", "", past, 0o600, true, "has expired"},
		{"Codex's auth.json has expired in a variable", authEnv, "", "TEST_CODEX_LOGIN", past, 0, true, "has expired"},
		{"Codex's auth.json expires soon", auth, "login.json", "", login(30 * time.Minute), 0o600, false, "expires at"},
		{"Codex's auth.json is readable by others", auth, "login.json", "", far, 0o644, false, "mode 0644"},
		{"Codex's auth.json is a login", auth, "login.json", "", far, 0o600, false, "ChatGPT login"},
	}
}

// proveBadCredentials: what cannot work is told before anything starts, what is risky is told and works.
func (w *world) proveBadCredentials(t *testing.T) {
	for _, c := range badCredentials() {
		t.Run(c.name, func(t *testing.T) {
			w := w.in(t)
			if c.variable != "" {
				w.env = append(slices.Clone(w.env), c.variable+"="+c.text)
				if c.text == "-" {
					w.env = slices.DeleteFunc(w.env, func(kv string) bool { return strings.HasPrefix(kv, c.variable+"=") })
				}
			} else {
				defer w.replace(c.file, c.text, c.mode)()
			}
			e := w.run(c.invocation, vendormock.Script{Answer: answer})
			if said := strings.Join(strings.Fields(e.stderr), " "); !strings.Contains(said, c.says) { // it is broken into lines
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

// replace puts another text into a file, "-" for no file; what it returns undoes that.
func (w *world) replace(name, text string, mode os.FileMode) (undo func()) {
	w.t.Helper()
	file := filepath.Join(w.dir, name)
	was, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		w.t.Fatal(err)
	}
	if text != "-" {
		if err := errors.Join(os.WriteFile(file, []byte(text), mode), os.Chmod(file, mode)); err != nil {
			w.t.Fatal(err)
		}
	}
	return func() {
		if err := os.WriteFile(file, was, 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
}
