package policy

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/hclspec"
)

func TestAdvise(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	jwt := func(end time.Time) string {
		body := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, end.Unix()))
		return "h." + body + ".s"
	}
	login := func(token string) string {
		return `{"OPENAI_API_KEY":null,"tokens":{"access_token":"` + token + `","refresh_token":"TOP-SECRET"}}`
	}
	for _, c := range []struct {
		reason, name, secret string
		fail                 string
		warn                 []string
	}{
		{"a token", CredentialClaudeOAuth, "sk-ant-oat01-x\n", "", nil},
		{"a key in the token's place", CredentialClaudeOAuth, "sk-ant-api03-TOP-SECRET", `name the credential "ANTHROPIC_API_KEY"`, nil},
		{"a token in the key's place", CredentialClaudeKey, "sk-ant-oat01-TOP-SECRET", `name the credential "CLAUDE_CODE_OAUTH_TOKEN"`, nil},
		{"the CLI's own file", CredentialClaudeOAuth, `{"claudeAiOauth":{"accessToken":"TOP-SECRET"}}`, "claude setup-token", nil},
		{"nothing", CredentialClaudeKey, " \n", "is empty", nil},
		{"a key", CredentialOpenAIKey, "sk-proj-x", "", nil},
		{"the wrong file", CredentialOpenAIKey, `{"OPENAI_API_KEY":"TOP-SECRET"}`, `name the credential "auth.json"`, nil},
		{"a key of the other vendor", CredentialOpenAIKey, "sk-ant-api03-TOP-SECRET", "Anthropic's", nil},
		{"a key in its file", CredentialCodexAuth, `{"OPENAI_API_KEY":"k"}`, "", nil},
		{"no JSON, and no part of it is told", CredentialCodexAuth, `TOP-SECRET`, "no JSON object", nil},
		{"an empty file of Codex", CredentialCodexAuth, `{"OPENAI_API_KEY":null}`, "neither", nil},
		{"a login that holds", CredentialCodexAuth, login(jwt(now.Add(48 * time.Hour))), "", []string{"ChatGPT login"}},
		{"a login that ends soon", CredentialCodexAuth, login(jwt(now.Add(time.Minute))), "", []string{"ChatGPT login", "expires at 2026-11-29T12:01:00Z"}},
		{"a login that has ended", CredentialCodexAuth, login(jwt(now)), "has expired at 2026-11-29T12:00:00Z", nil},
		{"a token that says nothing of its end", CredentialCodexAuth, login("opaque"), "", []string{"ChatGPT login"}},
		{"a custom vendor's, whatever it is", "token", "x", "", nil},
		{"a custom vendor's, empty", "token", "", "is empty", nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			warnings, err := Credential{Name: c.name}.Advise([]byte(c.secret), now)
			if (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
				t.Errorf("error %v, want %q in it", err, c.fail)
			}
			if len(warnings) != len(c.warn) {
				t.Fatalf("warnings %q, want %q", warnings, c.warn)
			}
			for i, w := range c.warn {
				if !strings.Contains(warnings[i], w) {
					t.Errorf("warning %q, want %q in it", warnings[i], w)
				}
			}
			if all := fmt.Sprint(warnings, err); strings.Contains(all, "TOP-SECRET") {
				t.Errorf("it tells the secret: %s", all)
			}
		})
	}
}

// TestAdviseOnCustomCredentials: the names are the user's, and may be those of a built-in kind.
func TestAdviseOnCustomCredentials(t *testing.T) {
	for _, name := range []string{CredentialClaudeOAuth, CredentialClaudeKey, CredentialOpenAIKey, CredentialCodexAuth} {
		s := fullSpec()
		vendorOf(s, "local").Credentials[0].Name = name
		c := mustSeal(t, s, "invocation.local_fix").Credentials()[0]
		for _, secret := range []string{"{}", "sk-ant-api03-x", "sk-ant-oat01-x", "not JSON"} {
			if warnings, err := c.Advise([]byte(secret), time.Now()); err != nil || len(warnings) > 0 {
				t.Errorf("%s of a custom vendor is %q: %v, %v", name, secret, warnings, err)
			}
		}
		if _, err := c.Advise([]byte(" \n"), time.Now()); err == nil {
			t.Errorf("%s of a custom vendor is empty, and nobody says so", name)
		}
	}
}

func TestSharedLogin(t *testing.T) {
	s := fullSpec()
	if d := find(Check(s), SummaryCredentialShared); d != nil {
		t.Errorf("an API key is nobody's to renew: %s", d.Detail)
	}
	vendorOf(s, "codex").Credentials[0].Name = CredentialCodexAuth
	d := find(Check(s), SummaryCredentialShared)
	if d == nil || d.Severity != hcl.DiagWarning || d.Subject.Start.Line != 23 || !strings.Contains(d.Detail, "invocation.codex_fix, ") {
		t.Errorf("five invocations share a login, and Check says %v", d)
	}
	var one []hclspec.Invocation
	for _, i := range s.Invocations {
		if i.Name == "codex_fix" {
			one = append(one, i)
		}
	}
	s.Invocations = one
	if d := find(Check(s), SummaryCredentialShared); d != nil {
		t.Errorf("one invocation shares with nobody: %s", d.Detail)
	}

	twin := *vendorOf(s, "codex")
	twin.Name = "twin"
	s.Vendors = append(s.Vendors, twin)
	two := one[0]
	two.Name, two.Address, two.Vendor = "two", "invocation.two", set("twin", 90)
	s.Invocations = append(s.Invocations, two)
	var told []string
	for _, d := range Check(s) {
		if d.Summary == SummaryCredentialShared {
			told = append(told, d.Detail)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], "invocation.codex_fix, invocation.two") {
		t.Errorf("two vendors with one login: %q", told)
	}
	s.Vendors[len(s.Vendors)-1].Credentials = []hclspec.Credential{{Name: CredentialCodexAuth, SourceFile: set("/another", 91)}}
	if d := find(Check(s), SummaryCredentialShared); d != nil {
		t.Errorf("two logins are shared by nobody: %s", d.Detail)
	}
}
