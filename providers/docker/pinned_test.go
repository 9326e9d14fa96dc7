package docker

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/sandplan/sandplan/planner"
)

func TestFindAuth(t *testing.T) {
	secret := base64.StdEncoding.EncodeToString([]byte("ann:s3:cret"))
	for _, tt := range []struct {
		reason, config, domain string
		user, password, token  string
		err                    string
	}{
		{reason: "nobody is logged in", config: `{}`, domain: "docker.io"},
		{reason: "a password may hold a colon", config: `{"auths":{"reg.example:5000":{"auth":"` + secret + `"}}}`, domain: "reg.example:5000", user: "ann", password: "s3:cret"},
		{reason: "another registry's are not given away", config: `{"auths":{"reg.example":{"auth":"` + secret + `"}}}`, domain: "evil.example"},
		{reason: "a name that only begins alike", config: `{"auths":{"reg.example":{"auth":"` + secret + `"}}}`, domain: "reg.example.evil"},
		{reason: "Docker Hub's key is a URL", config: `{"auths":{"https://index.docker.io/v1/":{"auth":"` + secret + `"}}}`, domain: "docker.io", user: "ann", password: "s3:cret"},
		{reason: "a token", config: `{"auths":{"reg.example":{"identitytoken":"t"}}}`, domain: "reg.example", token: "t"},
		{reason: "a helper is not run", config: `{"credHelpers":{"reg.example":"ecr-login"}}`, domain: "reg.example", err: `helper "ecr-login"`},
		{reason: "nor a store", config: `{"auths":{"reg.example":{}},"credsStore":"desktop"}`, domain: "reg.example", err: `store "desktop"`},
		{reason: "plain credentials go before the store", config: `{"auths":{"reg.example":{"auth":"` + secret + `"}},"credsStore":"desktop"}`, domain: "reg.example", user: "ann", password: "s3:cret"},
		{reason: "broken", config: `{"auths":{"reg.example":{"auth":"!"}}}`, domain: "reg.example", err: "not base64"},
		{reason: "no JSON", config: `{`, domain: "reg.example", err: "not JSON"},
	} {
		got, err := findAuth([]byte(tt.config), tt.domain)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %q", tt.reason, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.reason, err)
			continue
		}
		var user, password, token string
		if got != nil {
			user, password, token = got.Username, got.Password, got.IdentityToken
		}
		if user != tt.user || password != tt.password || token != tt.token {
			t.Errorf("%s: %q %q %q, want %q %q %q", tt.reason, user, password, token, tt.user, tt.password, tt.token)
		}
	}
}

func TestPullRef(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for ref, want := range map[string]string{
		"agent:1":                       "docker.io/library/agent@" + digest,
		"team/agent":                    "docker.io/team/agent@" + digest,
		"reg.example:5000/agent:1":      "reg.example:5000/agent@" + digest,
		"reg.example/agent:1@" + digest: "reg.example/agent@" + digest,
	} {
		if got, err := pullRef(ref, digest); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", ref, got, err, want)
		}
	}
	if got, err := pullRef("Not A Name", digest); err == nil {
		t.Errorf("no image name: %s", got)
	}
}

func TestDigestOf(t *testing.T) {
	a, b := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	digests := []string{"other/agent@" + b, "team/agent@" + a}
	for ref, want := range map[string]string{"team/agent:1": a, "docker.io/team/agent": a, "agent:1": "", "bad name": ""} {
		if got := digestOf(ref, digests); got != want {
			t.Errorf("%s: %q, want %q: a digest holds for the repository that it was pulled from", ref, got, want)
		}
	}
}

func TestHashTree(t *testing.T) {
	archive := func(headers ...tar.Header) *bytes.Buffer {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range headers {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size))); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return &b
	}
	dir := tar.Header{Name: ".sandplan/", Typeflag: tar.TypeDir, Mode: 0o555}
	file := tar.Header{Name: ".sandplan/sandplan", Typeflag: tar.TypeReg, Mode: 0o555, Size: 3}
	const sum = "sha256:cd2eb0837c9b4c962c22d2ff8b5441b7b45805887f051d39bf133b583baf6860"
	setuid, owned, link := file, file, tar.Header{Name: ".sandplan/sandplan", Typeflag: tar.TypeSymlink, Linkname: "/bin/sh", Mode: 0o777}
	setuid.Mode, owned.Uid = 0o4555, 7
	capable := file
	capable.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": "\x01\x02"}
	for _, tt := range []struct {
		reason string
		of     []tar.Header
		want   string
	}{
		{"the program and nothing else", []tar.Header{dir, file}, `{"sandplan":"` + sum + ` mode 0555 owner 0:0"}`},
		{"set-user-ID", []tar.Header{dir, setuid}, `{"sandplan":"` + sum + ` mode 4555 owner 0:0"}`},
		{"somebody's", []tar.Header{dir, owned}, `{"sandplan":"` + sum + ` mode 0555 owner 7:0"}`},
		{"with capabilities", []tar.Header{dir, capable}, `{"sandplan":"` + sum + ` mode 0555 owner 0:0 security.capability 0102"}`},
		{"a link in its place", []tar.Header{dir, link}, `{"sandplan":"type 2 to \"/bin/sh\" mode 0777 owner 0:0"}`},
		{"nothing", []tar.Header{dir}, `{}`},
	} {
		got, err := hashTree(archive(tt.of...))
		if text := planner.JSON(got).Text(); err != nil || text != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.reason, text, err, tt.want)
		}
	}
	if got, err := hashTree(bytes.NewReader(archive(dir, file).Bytes()[:600])); err == nil {
		t.Errorf("an archive that breaks off: %v", got)
	}
}
