package docker

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/docker/docker/api/types/mount"

	"github.com/sandplan/sandplan/hclspec"
)

// git runs git in dir, with nothing of the user's configuration.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// newRepository is a repository with one commit, at a path without symlinks.
func newRepository(t *testing.T, name string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, name)
	mkdir(t, dir)
	git(t, dir, "init", "-q")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
	return dir
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	mkdir(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func TestFindWorktreeRefuses(t *testing.T) {
	repo := newRepository(t, "repo")
	root := filepath.Dir(repo)
	symlink(t, repo, filepath.Join(root, "link"))
	symlink(t, root, filepath.Join(root, "up"))
	write(t, filepath.Join(root, "file"), "x")
	mkdir(t, filepath.Join(root, "evil"))
	symlink(t, "/etc", filepath.Join(root, "evil/.git"))
	mkdir(t, filepath.Join(root, "mounted/below"))
	mkdir(t, filepath.Join(root, "home/ann/work"))
	mkdir(t, filepath.Join(root, "engine/volumes"))
	h := &host{
		mounts: []string{"/", filepath.Join(root, "mounted/below"), repo},
		homes:  []string{filepath.Join(root, "home/ann")},
		engine: []string{filepath.Join(root, "engine")},
	}
	for _, tt := range []struct {
		reason, path, summary string
		detail                string
	}{
		{"nothing there: the user needs the absolute path", root + "/nope", summaryWorktreeMissing, root + "/nope"},
		{"the last component is a symlink", root + "/link", summaryWorktree, root + "/link is a symlink to " + repo},
		{"a component on the way is one", root + "/up/repo", summaryWorktree, root + "/up is a symlink to " + root},
		{"a file", root + "/file", summaryWorktree, "not a directory"},
		{"the whole machine", "/", summaryWorktree, "a directory of the system"},
		{"a directory of the system", "/usr", summaryWorktree, "a directory of the system"},
		{"below /etc", "/etc/ssl", summaryWorktree, "below /etc"},
		{"a home directory", root + "/home/ann", summaryWorktree, "is a home directory"},
		{"above a home directory", root + "/home", summaryWorktree, "holds the home directory " + root + "/home/ann"},
		{"the engine's data", root + "/engine", summaryWorktree, "the engine's"},
		{"inside the engine's data", root + "/engine/volumes", summaryWorktree, "lies in " + root + "/engine"},
		{"a mount below stays writable in a read-only worktree", root + "/mounted", summaryWorktree, root + "/mounted/below"},
		{".git is a symlink: its target would be mounted", root + "/evil", summaryGit, root + "/evil/.git is a symlink to /etc"},
	} {
		_, err := h.findWorktree(tt.path)
		var r *refusal
		if !errors.As(err, &r) {
			t.Errorf("%s: %s: %v is no refusal", tt.reason, tt.path, err)
			continue
		}
		if r.summary != tt.summary || !strings.Contains(r.detail, tt.detail) {
			t.Errorf("%s: %s: %v\nwant %q with %q", tt.reason, tt.path, r, tt.summary, tt.detail)
		}
	}
	// A worktree that is a mount point itself, or lies below a home directory, is fine.
	for _, ok := range []string{repo, root + "/home/ann/work"} {
		if w, err := h.findWorktree(ok); err != nil || w.path != ok || w.inode == 0 {
			t.Errorf("%s: %+v, %v", ok, w, err)
		}
	}
}

func TestGitFile(t *testing.T) {
	repo := newRepository(t, "repo")
	root := filepath.Dir(repo)
	linked := filepath.Join(root, "linked")
	git(t, repo, "worktree", "add", "-q", linked)

	g, err := findGitDir(linked)
	if want := (gitDir{kind: gitLinked, pointer: repo + "/.git/worktrees/linked", common: repo + "/.git"}); err != nil || g != want {
		t.Fatalf("a linked worktree: %+v, %v; want %+v", g, err, want)
	}
	if got := g.commonTarget("/work"); got != repo+"/.git" {
		t.Errorf("the repository must stand at %s in the container, got %s", repo+"/.git", got)
	}
	if g, err := findGitDir(repo); err != nil || g.kind != gitOwn {
		t.Errorf("a main worktree: %+v, %v", g, err)
	}
	if g, err := findGitDir(root); err != nil || g.kind != gitAbsent {
		t.Errorf("no repository: %+v, %v", g, err)
	}

	for i, tt := range []struct{ reason, text, want string }{
		{"any directory of the host", "gitdir: /etc\n", "not of the form"},
		{"a repository's directory that is no worktree's", "gitdir: " + repo + "/.git\n", "not of the form"},
		{"the worktree directory of another worktree", "gitdir: " + repo + "/.git/worktrees/linked\n", "belongs to another worktree"},
		{"no such worktree", "gitdir: " + repo + "/.git/worktrees/none\n", "none"},
		{"a submodule", "gitdir: ../repo/.git/modules/sub\n", "submodules"},
		{"not git's", "hello\n", "gitdir: "},
		{"no text", "gitdir: /r\xff/.git/worktrees/x\n", "not valid UTF-8"},
		{"two lines", "gitdir: " + repo + "/.git/worktrees/linked\nmore\n", "more than one line"},
	} {
		dir := filepath.Join(root, "bad", string(rune('a'+i)))
		write(t, filepath.Join(dir, ".git"), tt.text)
		if g, err := findGitDir(dir); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v; want an error with %q", tt.reason, g, err, tt.want)
		}
	}

	// Git can also write the pointer relative to the worktree: then it leads elsewhere from /work.
	write(t, filepath.Join(linked, ".git"), "gitdir: ../repo/.git/worktrees/linked\n")
	if g, err = findGitDir(linked); err != nil || g.common != repo+"/.git" || g.commonTarget("/work") != "/repo/.git" {
		t.Errorf("a relative pointer: %+v to %s, %v", g, g.commonTarget("/work"), err)
	}

	// A repository behind a symlink is refused, although git would follow it.
	symlink(t, repo, filepath.Join(root, "alias"))
	write(t, filepath.Join(linked, ".git"), "gitdir: "+root+"/alias/.git/worktrees/linked\n")
	if g, err := findGitDir(linked); err == nil || !strings.Contains(err.Error(), "alias is a symlink") {
		t.Errorf("a repository behind a symlink: %+v, %v", g, err)
	}
}

func TestBinds(t *testing.T) {
	own := worktree{place: place{path: "/src/app"}, git: gitDir{kind: gitOwn}}
	linked := worktree{place: place{path: "/src/wt"}, git: gitDir{kind: gitLinked, pointer: "/src/app/.git/worktrees/wt", common: "/src/app/.git"}}
	for _, tt := range []struct {
		reason   string
		w        worktree
		writable bool
		git      bool
		dirs     []string
		want     []bind
	}{
		{"read-only: .git as well", own, false, true, nil,
			[]bind{{"/src/app", "/work", true}, {"/src/app/.git", "/work/.git", true}}},
		{"writable: .git stays read-only", own, true, true, nil,
			[]bind{{"/src/app", "/work", false}, {"/src/app/.git", "/work/.git", true}}},
		{"without git nothing of it is bound", own, false, false, nil,
			[]bind{{"/src/app", "/work", true}}},
		{"linked: the repository stands where the pointer leads", linked, true, true, nil,
			[]bind{{"/src/app/.git", "/src/app/.git", true}, {"/src/wt", "/work", false}, {"/src/wt/.git", "/work/.git", true}}},
		{"linked without git: the pointer cannot be changed and leads nowhere", linked, true, false, nil,
			[]bind{{"/src/wt", "/work", false}, {"/src/wt/.git", "/work/.git", true}}},
		{"every directory on the way to the configuration is a mount point, which cannot be renamed", own, true, true, []string{"/src/app/ops/agents"},
			[]bind{{"/src/app", "/work", false}, {"/src/app/.git", "/work/.git", true}, {"/src/app/ops", "/work/ops", false}, {"/src/app/ops/agents", "/work/ops/agents", true}}},
	} {
		got, err := tt.w.binds(tt.writable, tt.git, tt.dirs)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %v, %v\nwant %v", tt.reason, got, err, tt.want)
		}
	}
	clash := linked
	clash.git = gitDir{kind: gitLinked, pointer: "/work/.git/worktrees/wt", common: "/work/.git"}
	if got, err := clash.binds(false, true, nil); err == nil || !strings.Contains(err.Error(), "where the worktree is") {
		t.Errorf("a repository that would stand in the worktree's place: %v, %v", got, err)
	}
}

func TestWorktreeUser(t *testing.T) {
	const dir, open, closed = modeDir, 0o755, 0o700
	for _, tt := range []struct {
		reason   string
		place    place
		declared string
		writable bool
		want     string // user, or a part of the error
		fails    bool
	}{
		{"the owner", place{uid: 1000, gid: 100, mode: dir | closed}, "", true, "1000:100", false},
		{"root's, read-only: nobody in particular", place{mode: dir | open}, "", false, "65532:65532", false},
		{"root's and unreadable for anybody else", place{mode: dir | closed}, "", false, `set user = "0:0"`, true},
		{"root's and writable", place{mode: dir | open}, "", true, "belongs to root", true},
		{"root's and writable, with a user who may not", place{mode: dir | open}, "1000:1000", true, "chown -R 1000:1000", true},
		{"root's and writable, with a user who may", place{mode: dir | 0o777}, "1000:1000", true, "1000:1000", false},
		{"somebody else's, read-only", place{uid: 1000, gid: 1000, mode: dir | open}, "2000:2000", false, "2000:2000", false},
		{"somebody else's and writable", place{uid: 1000, gid: 1000, mode: dir | open}, "2000:2000", true, `set user = "1000:1000"`, true},
		{"writable for the group", place{uid: 1000, gid: 50, mode: dir | 0o770}, "2000:50", true, "2000:50", false},
		{"the owner counts, not the group", place{uid: 1000, gid: 50, mode: dir | 0o070}, "1000:50", true, "may not write", true},
		{"the proxies' own", place{mode: dir | open}, "65531:1000", false, "whom the proxies run as", true},
		{"the proxies' own, as its owner", place{uid: 65531, gid: 100, mode: dir | open}, "", true, "whom the proxies run as", true},
		{"declared root in a writable phase", place{uid: 1000, gid: 1000, mode: dir | open}, "0:0", true, "user 0", true},
	} {
		w := worktree{place: tt.place}
		w.path = "/src/app"
		u, err := w.user(tt.declared, tt.writable)
		if tt.fails != (err != nil) {
			t.Errorf("%s: %s, %v", tt.reason, u, err)
			continue
		}
		if got := u.String(); err == nil && got != tt.want {
			t.Errorf("%s: %s, want %s", tt.reason, got, tt.want)
		}
		if err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q in it", tt.reason, err, tt.want)
		}
	}
}

func TestConfine(t *testing.T) {
	w := worktree{place: place{path: "/src/app"}, git: gitDir{kind: gitOwn}}
	for _, tt := range []struct {
		reason   string
		x        exposure
		readOnly []string
		refused  string
	}{
		{"elsewhere", exposure{configDir: "/src/ops", files: []exposed{{"/src/ops/a.md", "a prompt", []string{"/src/ops/a.md"}}}}, nil, ""},
		{"a name that only begins alike", exposure{configDir: "/src/application", files: []exposed{{"/src/app.md", "a prompt", []string{"/src/app.md"}}}}, nil, ""},
		{"above the worktree", exposure{configDir: "/src"}, nil, ""},
		{"a subdirectory is covered, with all in it", exposure{configDir: "/src/app/ops", files: []exposed{{"/src/app/ops/lock.hcl", "the lock file", []string{"/src/app/ops/lock.hcl"}}}}, []string{"/src/app/ops"}, ""},
		{"the root cannot be covered", exposure{configDir: "/src/app"}, nil, "git worktree add"},
		{"a file beside the covered directory", exposure{configDir: "/src/app/ops", files: []exposed{{"/src/app/prompts/a.md", "a prompt", []string{"/src/app/prompts/a.md"}}}}, nil, "/src/app/prompts/a.md, a prompt,"},
		{"a file in .git is read-only anyway", exposure{configDir: "/src/ops", files: []exposed{{"/src/app/.git/token", "the credential", []string{"/src/app/.git/token"}}}}, nil, ""},
		{"the worktree of another agent", exposure{configDir: "/src/ops", trees: []exposed{{"/src/app/sub", "the worktree of invocation.b", []string{"/src/app/sub"}}}}, nil, "the worktree of invocation.b"},
		{"the repository of a linked worktree is this one's own", exposure{configDir: "/src/ops", trees: []exposed{{"/src/app/.git", "the repository of invocation.b", []string{"/src/app/.git"}}}}, nil, ""},
		{"the same worktree twice", exposure{configDir: "/src/ops", trees: []exposed{{"/src/app", "the worktree of invocation.b", []string{"/src/app"}}}}, nil, ""},
	} {
		got, err := tt.x.confine(w)
		if (tt.refused == "") != (err == nil) || !reflect.DeepEqual(got, tt.readOnly) {
			t.Errorf("%s: %v, %v; want %v", tt.reason, got, err, tt.readOnly)
		}
		if err != nil && !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("%s: %v, want %q in it", tt.reason, err, tt.refused)
		}
	}
	bare := worktree{place: place{path: "/src/app"}}
	if _, err := (exposure{configDir: "/src/ops"}).confine(bare); err == nil || !strings.Contains(err.Error(), "git init") {
		t.Errorf("a writable worktree without .git: %v", err)
	}
}

func TestExposureOf(t *testing.T) {
	e := &Engine{options: Options{Self: "/usr/bin/sandplan", DataDir: "/src/app/.sandplan"}}
	s := &hclspec.Spec{
		Dir:     "/src/ops",
		Paths:   map[string]string{"sandplan.hcl": "/src/ops/sandplan.hcl"},
		Lock:    hclspec.Lock{Path: "/src/ops/.sandplan.lock.hcl"},
		Vendors: []hclspec.Vendor{{Credentials: []hclspec.Credential{{Name: "KEY", SourceFile: hclspec.Val[string]{V: "/run/key"}}, {Name: "ENV"}}}},
		Invocations: []hclspec.Invocation{{Address: "invocation.a", Files: []string{"/src/p.md"}},
			{Address: "invocation.b"}},
	}
	x := e.exposureOf(s, map[string]worktree{"invocation.b": {place: place{path: "/src/wt"}, git: gitDir{kind: gitLinked, common: "/src/app/.git"}}})
	var got []string
	for _, f := range append(x.files, x.trees...) {
		got = append(got, f.path)
	}
	want := []string{"/src/ops", "/src/ops/sandplan.hcl", "/src/ops/.sandplan.lock.hcl", "/run/key", "/src/p.md", "/usr/bin/sandplan", "/src/app/.sandplan", "/src/wt", "/src/app/.git"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("exposed %v\nwant %v", got, want)
	}
}

func TestNestedRepositories(t *testing.T) {
	root := t.TempDir()
	mkdir(t, root+"/.git/modules/x/.git") // inside the own .git: read-only anyway
	mkdir(t, root+"/vendor/lib/.git")
	write(t, root+"/sub/.git", "gitdir: ../.git/modules/sub\n")
	if got, want := nestedRepositories(root), []string{"sub", "vendor/lib"}; !reflect.DeepEqual(got, want) {
		t.Errorf("nested repositories %v, want %v", got, want)
	}
}

func TestMountPoints(t *testing.T) {
	table := "22 1 0:21 / / rw - ext4 /dev/x rw\n30 22 0:30 / /a\\040b rw shared:1 - tmpfs tmpfs rw\nshort\n"
	if got, want := mountPoints([]byte(table)), []string{"/", "/a b"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestHomeDirs(t *testing.T) {
	passwd := "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33::/var/www:/x\nann:x:1000:1000::/home/ann/:/bin/sh\nnobody:x:65534:65534::/nonexistent:/x\nbroken\n"
	if got, want := homeDirs([]byte(passwd)), []string{"/root", "/home/ann"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestReadSmallNeverBlocks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readSmall(fifo, 10); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a FIFO: %v", err)
	}
	write(t, filepath.Join(dir, "big"), "0123456789a")
	if _, err := readSmall(filepath.Join(dir, "big"), 10); err == nil || !strings.Contains(err.Error(), "more than 10 bytes") {
		t.Errorf("too big: %v", err)
	}
}

// TestBindsAreNotRecursive: on 20.10 what is mounted below a directory came along with it, and stayed
// writable below one that was bound read-only; and what the host mounts there later must not appear.
func TestBindsAreNotRecursive(t *testing.T) {
	for _, readOnly := range []bool{true, false} {
		m := bind{"/src/app", "/work", readOnly}.mount()
		if m.Type != mount.TypeBind || m.ReadOnly != readOnly || m.BindOptions == nil || !m.BindOptions.NonRecursive ||
			m.BindOptions.Propagation != mount.PropagationRPrivate || m.BindOptions.CreateMountpoint {
			t.Errorf("read-only %v: %+v, %+v", readOnly, m, m.BindOptions)
		}
	}
}

func TestSentence(t *testing.T) {
	for _, tt := range []struct{ text, want, reason string }{
		{"no name servers", "No name servers.", "a sentence begins with a capital"},
		{"it ends.", "It ends.", "and has one full stop"},
		{"subnet_pool has no room", "subnet_pool has no room.", "an attribute is written as it is"},
		{"invocation.a has no user", "invocation.a has no user.", "so is an address"},
		{"/w/tree is a file", "/w/tree is a file.", "and a path"},
	} {
		if got := sentence(errors.New(tt.text)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.reason, got, tt.want)
		}
	}
}
