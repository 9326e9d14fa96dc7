package policy

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/sandplan/sandplan/hclspec"
)

// soon is how close to its end a token is told of: a run may take as long.
const soon = time.Hour

// Advise looks at a secret before anything starts. An error says why it cannot work, a warning what to
// expect of it; neither holds a part of it.
func (c Credential) Advise(secret []byte, now time.Time) (warnings []string, err error) {
	text := strings.TrimSpace(string(secret))
	if text == "" {
		return nil, fmt.Errorf("credential %s is empty", c.Name)
	}
	if c.isCustom() {
		return nil, nil // what it is for its command, nobody else knows
	}
	switch c.Name {
	case CredentialClaudeOAuth:
		return nil, wrongForm(c, text, "sk-ant-api", CredentialClaudeKey)
	case CredentialClaudeKey:
		return nil, wrongForm(c, text, "sk-ant-oat", CredentialClaudeOAuth)
	case CredentialOpenAIKey:
		switch {
		case strings.HasPrefix(text, "{"):
			return nil, fmt.Errorf("credential %s holds a JSON object, not a key; if it is Codex's auth.json, name the credential %q", c.Name, CredentialCodexAuth)
		case strings.HasPrefix(text, "sk-ant-"):
			return nil, fmt.Errorf("credential %s holds what looks like a secret of Anthropic's, which OpenAI does not know", c.Name)
		}
	case CredentialCodexAuth:
		warnings, err := adviseAuth(secret, now)
		if err != nil {
			return nil, fmt.Errorf("credential %q: %w", c.Name, err)
		}
		return warnings, nil
	}
	return nil, nil
}

// isCustom: those of custom vendors have names of the user's, which may be the same.
func (c Credential) isCustom() bool { return strings.HasPrefix(c.Path, CredentialDir+"/") }

// wrongForm: Anthropic's two kinds of secret look alike, and each is sent in a way that the other is
// refused for, with an answer that does not say why.
func wrongForm(c Credential, text, other, its string) error {
	switch {
	case strings.HasPrefix(text, other):
		return fmt.Errorf("credential %s holds what looks like the other kind of secret; name the credential %q", c.Name, its)
	case strings.HasPrefix(text, "{"):
		return fmt.Errorf("credential %s holds a JSON object, not a token; Claude Code's own credentials file is renewed by the CLI that made it: "+
			"make a token for sandplan with `claude setup-token`", c.Name)
	}
	return nil
}

// adviseAuth reads Codex's auth.json: an API key, or the tokens of a ChatGPT login.
func adviseAuth(raw []byte, now time.Time) ([]string, error) {
	var a struct {
		Key    *string `json:"OPENAI_API_KEY"`
		Tokens *struct {
			Access  string `json:"access_token"`
			Refresh string `json:"refresh_token"`
		} `json:"tokens"`
	}
	if err := json.Unmarshal(bytes.TrimSpace(raw), &a); err != nil {
		// The error of the decoder may quote a part of the secret.
		return nil, errors.New("it is no JSON object as Codex writes it; make one with `codex login`")
	}
	switch {
	case a.Key != nil && *a.Key != "":
		return nil, nil
	case a.Tokens == nil || a.Tokens.Access == "":
		return nil, errors.New("it holds neither OPENAI_API_KEY nor the tokens of a login; make one with `codex login`")
	}
	warnings := []string{"it holds a ChatGPT login, which Codex renews where nobody keeps what it gets: when that happens in a run, the file here becomes invalid, and `codex login` makes a new one"}
	if end, ok := expiry(a.Tokens.Access); ok {
		at := end.UTC().Format(time.RFC3339)
		switch {
		case !end.After(now):
			return nil, fmt.Errorf("its access token has expired at %s; log in again with `codex login`", at)
		case end.Before(now.Add(soon)):
			warnings = append(warnings, "its access token expires at "+at)
		}
	}
	return warnings, nil
}

// expiry is the end of a JSON Web Token (RFC 7519), whose signature is its issuer's business.
func expiry(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, false
	}
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if json.Unmarshal(raw, &claims) != nil || claims.Expires <= 0 {
		return time.Time{}, false
	}
	return time.Unix(claims.Expires, 0), true
}

// checkShared warns of a login that several invocations would renew, each in its own container: the first
// renewal makes the copies of all others invalid. It is the same login when it comes from the same place,
// whichever vendor blocks name it.
func checkShared(s *hclspec.Spec) hcl.Diagnostics {
	at := reporter{}
	type source struct{ env, file, unknown string }
	shared := map[source][]string{}
	vendors := map[string]source{}
	for _, v := range s.Vendors {
		if c, ok := loginOf(v); ok {
			from := source{env: c.SourceEnv.V, file: c.SourceFile.V}
			if from == (source{}) {
				from.unknown = v.Name // not known before a plan
			}
			vendors[v.Name] = from
		}
	}
	for _, inv := range s.Invocations {
		if from, ok := vendors[inv.Vendor.V]; ok {
			shared[from] = append(shared[from], inv.Address)
		}
	}
	for _, v := range s.Vendors {
		users := shared[vendors[v.Name]]
		if c, ok := loginOf(v); ok && len(users) > 1 {
			delete(shared, vendors[v.Name]) // told once
			at.block = v.Range
			at.warn(c.Range, SummaryCredentialShared, "%s share the auth.json of vendor.%s. If it holds a ChatGPT login, the first of them that renews it makes the others' copies invalid: "+
				"run one at a time, or use an API key.", strings.Join(users, ", "), v.Name)
		}
	}
	return at.diags
}

// loginOf is the credential of a vendor that may be a login.
func loginOf(v hclspec.Vendor) (hclspec.Credential, bool) {
	i := slices.IndexFunc(v.Credentials, func(c hclspec.Credential) bool { return c.Name == CredentialCodexAuth })
	if v.Kind.V != KindCodex || i < 0 {
		return hclspec.Credential{}, false
	}
	return v.Credentials[i], true
}
