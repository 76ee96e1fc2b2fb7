//go:build !wheel

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	debian "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	redhat "github.com/goreleaser/nfpm/v2/rpm"
)

// Descriptions in the packages for systems.
const (
	maintainer = "The perfagent authors <https://github.com/perfagent/perfagent>"
	moreWords  = "perfagent runs a command unchanged and reports what it used on this node and what it wasted:\n" +
		"in the terminal, in a JSON report, and on one HTML page."
)

// deb makes the package for Debian and its derivatives.
func deb(r *release, p platform) (file, error) {
	return systemPackage(r, fmt.Sprintf("perfagent_%s_%s.deb", r.version, p.go_), p, debian.Default, layout{
		release: "", zsh: "usr/share/zsh/vendor-completions/_perfagent", license: "usr/share/doc/perfagent/copyright",
	})
}

// rpm makes the package for Fedora, RHEL, SUSE and their derivatives.
func rpm(r *release, p platform) (file, error) {
	return systemPackage(r, fmt.Sprintf("perfagent-%s-1.%s.rpm", r.version, p.machine), p, redhat.DefaultRPM, layout{
		release: "1", zsh: "usr/share/zsh/site-functions/_perfagent", license: "usr/share/licenses/perfagent/LICENSE",
	})
}

// A layout holds the differences between systems: the package release, and paths of files.
type layout struct{ release, zsh, license string }

// systemPackage makes a package for the system's package manager. The package has no install or removal scripts.
func systemPackage(r *release, name string, p platform, packager nfpm.Packager, l layout) (file, error) {
	content, err := installed(r, p, l)
	if err != nil {
		return file{}, err
	}
	dir, err := os.MkdirTemp("", "perfagent-dist-")
	if err != nil {
		return file{}, err
	}
	defer os.RemoveAll(dir)

	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "perfagent", Arch: p.go_, Version: r.sortable(), VersionSchema: "none", Release: l.release, Section: "utils", Priority: "optional",
		Maintainer: maintainer, Description: summary + "\n" + moreWords, Homepage: homepage, License: "MIT", MTime: r.time, DisableGlobbing: true,
	})
	info.Umask = 0 // all modes are explicit
	info.RPM.BuildHost, info.RPM.Summary, info.RPM.Group = "localhost", summary, "Applications/System"
	if info.Contents, err = staged(dir, content, r); err != nil {
		return file{}, err
	}
	var b bytes.Buffer
	if err := packager.Package(info, &b); err != nil {
		return file{}, fmt.Errorf("%s: %w", name, err)
	}

	return file{name: name, data: b.Bytes()}, nil
}

// installed returns the files of the package, by path below the root.
func installed(r *release, p platform, l layout) ([]file, error) {
	service, err := os.ReadFile(filepath.Join(r.checkout, "deploy", "systemd", "perfagent-sidecar.service"))
	if err != nil {
		return nil, err
	}
	content := append(under("usr/bin", []file{r.programs[p.go_]}),
		file{name: "usr/lib/systemd/system/perfagent-sidecar.service", data: service},
		file{name: l.license, data: r.document("LICENSE").data},
	)
	content = append(content, under("usr/share/doc/perfagent", []file{r.document("NOTICE"), r.document("README.md"), r.document("CHANGELOG.md")})...)

	shells := map[string]string{
		".bash": "usr/share/bash-completion/completions/perfagent",
		".zsh":  l.zsh,
		".fish": "usr/share/fish/vendor_completions.d/perfagent.fish",
	}
	for _, f := range r.completions {
		content = append(content, file{name: shells[path.Ext(f.name)], data: f.data})
	}

	for _, page := range r.man {
		var b bytes.Buffer
		if err := compressed(&b, func(w io.Writer) error { _, err := w.Write(page.data); return err }); err != nil {
			return nil, err
		}
		content = append(content, file{name: "usr/share/man/man1/" + page.name + ".gz", data: b.Bytes()})
	}

	return content, nil
}

// staged writes files into dir, where the packagers read them.
func staged(dir string, content []file, r *release) (files.Contents, error) {
	var list files.Contents
	for i, f := range content {
		source := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(source, f.data, 0o600); err != nil {
			return nil, err
		}
		kind := files.TypeFile
		if strings.HasPrefix(f.name, "usr/share/licenses/") {
			kind = files.TypeRPMLicense
		}
		list = append(list, &files.Content{
			Source: source, Destination: "/" + f.name, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode(), MTime: r.time},
		})
	}

	return list, nil
}
