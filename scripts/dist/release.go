package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Descriptions in all packages.
const (
	homepage = "https://github.com/perfagent/perfagent"
	summary  = "what a job really used on this node"
)

// A platform is a target for which packages are made. Its fields are the names of the platform.
type platform struct {
	go_     string // name in Go, Debian and OCI
	machine string // name in RPM and Python, as printed by uname -m
}

// platforms lists all targets.
var platforms = []platform{{"amd64", "x86_64"}, {"arm64", "aarch64"}}

// A release holds the contents of the packages.
type release struct {
	checkout string
	version  string    // content of the file VERSION
	time     time.Time // modification time of all files in all packages

	programs    map[string]file // programs by GOARCH
	man         []file          // perfagent.1, perfagent-run.1, …
	completions []file          // perfagent.bash, perfagent.zsh, perfagent.fish
	documents   []file          // README.md, CHANGELOG.md, LICENSE, NOTICE
	modules     []module        // linked modules with their licenses
}

// versionForm matches the normal form of PEP 440, without an epoch and a local part, because package managers interpret
// these differently.
var versionForm = regexp.MustCompile(`^[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?$`)

// newRelease builds the program for the targets, and reads the documents of the checkout.
func newRelease(checkout string, targets []platform) (*release, error) {
	data, err := os.ReadFile(filepath.Join(checkout, "VERSION"))
	if err != nil {
		return nil, err
	}
	r := &release{checkout: checkout, version: strings.TrimSpace(string(data)), programs: make(map[string]file)}
	if !versionForm.MatchString(r.version) {
		return nil, fmt.Errorf("VERSION is %q, want a version like 1.0.0 or 1.1.0rc1", r.version)
	}
	if r.time, err = sourceTime(checkout); err != nil {
		return nil, err
	}

	for _, p := range targets {
		data, err := r.build("GOOS=linux", "GOARCH="+p.go_)
		if err != nil {
			return nil, err
		}
		r.programs[p.go_] = file{name: "perfagent", data: data, exec: true}
	}
	if r.modules, err = linked(checkout); err != nil {
		return nil, err
	}

	return r, r.readDocuments()
}

// sourceTime returns the time in SOURCE_DATE_EPOCH. If that is not set, it returns the time of the newest commit or,
// without a repository, the earliest time that zip archives support.
func sourceTime(checkout string) (time.Time, error) {
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		cmd := exec.Command("git", "log", "-1", "--format=%ct")
		cmd.Dir = checkout
		if out, err := cmd.Output(); err == nil {
			seconds = strings.TrimSpace(string(out))
		}
	}
	if seconds == "" {
		return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC), nil
	}

	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is no number of seconds: %w", err)
	}
	return time.Unix(n, 0).UTC(), nil
}

// plain holds environment entries that override variables with an effect on the bytes of a build.
var plain = []string{"GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off", "GOAMD64=v1", "GOARM64=v8.0", "VCS="}

// build builds the program in the same way as every released build, and returns its bytes.
func (r *release) build(env ...string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "perfagent-dist-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	script, err := filepath.Abs(filepath.Join(r.checkout, "scripts", "build.sh"))
	if err != nil {
		return nil, err
	}

	path := filepath.Join(dir, "perfagent")
	cmd := exec.Command("sh", script, path)
	cmd.Env = append(append(os.Environ(), plain...), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building with %s: %w\n%s", strings.Join(env, " "), err, out)
	}

	return os.ReadFile(path)
}

// A program is perfagent built for this machine.
type program struct {
	path string
	home string // a folder without settings
}

// output returns the program's stdout, independent of the user's settings and language.
func (p program) output(args ...string) (string, error) {
	cmd := exec.Command(p.path, args...)
	cmd.Env = []string{"HOME=" + p.home, "XDG_CONFIG_HOME=" + p.home, "LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH")}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("perfagent %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}

	return string(out), nil
}

// ask builds the program for this machine, and makes the manual pages and the completions from its output.
func (r *release) ask() error {
	data, err := r.build("GOOS=", "GOARCH=")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "perfagent-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p := program{path: filepath.Join(dir, "perfagent"), home: dir}
	if err := os.WriteFile(p.path, data, 0o755); err != nil {
		return err
	}

	if r.man, err = manPages(p, r.version, r.time); err != nil {
		return err
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		text, err := p.output("completion", shell)
		if err != nil {
			return err
		}
		r.completions = append(r.completions, file{name: "perfagent." + shell, data: []byte(text)})
	}

	return nil
}

// readDocuments reads the documents and makes NOTICE.
func (r *release) readDocuments() error {
	for _, name := range []string{"README.md", "CHANGELOG.md", "LICENSE"} {
		data, err := os.ReadFile(filepath.Join(r.checkout, name))
		if err != nil {
			return err
		}
		r.documents = append(r.documents, file{name: name, data: data})
	}
	r.documents = append(r.documents, file{name: "NOTICE", data: notice(r.modules)})

	return nil
}

// document returns the document with the given name. It panics if there is none.
func (r *release) document(name string) file {
	for _, d := range r.documents {
		if d.name == name {
			return d
		}
	}
	panic("no document " + name)
}

// sortable returns the version in a form that Debian and RPM sort correctly: a version with ~ sorts before the version
// without it.
func (r *release) sortable() string {
	return regexp.MustCompile(`(a|b|rc|\.dev)([0-9]+)`).ReplaceAllString(r.version, "~$1$2")
}
