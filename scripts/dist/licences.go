package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A module is a dependency of the program: code that is linked into it, or files that it embeds.
type module struct {
	name, version string
	texts         []file // licences and notices
}

// standardName is the name of the only dependency that is not a Go module.
const standardName = "Go standard library"

// isLicense matches the names of license files and related files.
var isLicense = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|ofl)([.-].*)?$`)

// chosen maps each module that offers several licenses to the file of the chosen license.
var chosen = map[string]string{"github.com/golang/freetype": "licenses/ftl.txt"}

// linked returns the dependencies of the program on all platforms: modules and the standard library. It reads their
// licenses from the local module cache.
func linked(checkout string) ([]module, error) {
	std, err := standardLibrary(checkout)
	if err != nil {
		return nil, err
	}
	found := make(map[string]*module)

	for _, p := range platforms {
		packages, err := listPackages(checkout, p)
		if err != nil {
			return nil, err
		}
		for _, pkg := range packages {
			if err := pkg.addTo(found); err != nil {
				return nil, err
			}
		}
	}

	// The standard library has the same license, but not every distribution of Go contains the text.
	if same := found["golang.org/x/sys"]; same != nil {
		std.texts = same.texts
	}
	found[std.name] = std

	var all []module
	for _, name := range slices.Sorted(maps.Keys(found)) {
		slices.SortFunc(found[name].texts, func(a, b file) int { return strings.Compare(a.name, b.name) })
		if _, err := found[name].license(); err != nil {
			return nil, err
		}
		all = append(all, *found[name])
	}

	return all, nil
}

// goCommand runs the go command in a checkout, for a platform.
func goCommand(checkout string, p platform, args ...string) ([]byte, error) {
	name := os.Getenv("GO")
	if name == "" {
		name = "go"
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = checkout
	cmd.Env = append(append(os.Environ(), plain...), "GOOS=linux", "GOARCH="+p.go_, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}

	return out, nil
}

// standardLibrary returns the Go standard library without its license. The license also covers its vendored packages.
func standardLibrary(checkout string) (*module, error) {
	out, err := goCommand(checkout, platforms[0], "env", "GOVERSION")
	if err != nil {
		return nil, err
	}

	return &module{name: standardName, version: strings.TrimSpace(string(out))}, nil
}

// A goPackage is a package in the output of go list.
type goPackage struct {
	Dir        string
	Standard   bool
	EmbedFiles []string
	Module     *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// listPackages returns all packages of the program on one platform.
func listPackages(checkout string, p platform) ([]goPackage, error) {
	out, err := goCommand(checkout, p, "list", "-deps", "-json=Dir,Standard,EmbedFiles,Module", "./cmd/perfagent")
	if err != nil {
		return nil, err
	}

	var list []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg goPackage
		err := d.Decode(&pkg)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		list = append(list, pkg)
	}
}

// addTo adds the licenses of a package to its module. It finds them in the folder of the package, in the folders of its
// embedded files, and in all folders above, up to the root of the module.
func (pkg goPackage) addTo(found map[string]*module) error {
	if pkg.Standard || pkg.Module.Main {
		return nil
	}
	name, root := pkg.Module.Path, pkg.Module.Dir
	if found[name] == nil {
		found[name] = &module{name: name, version: pkg.Module.Version}
	}

	dirs := []string{pkg.Dir}
	for _, embedded := range pkg.EmbedFiles {
		dirs = append(dirs, filepath.Join(pkg.Dir, filepath.Dir(embedded)))
	}
	for _, dir := range dirs {
		if err := found[name].read(root, dir); err != nil {
			return err
		}
	}
	if special := chosen[name]; special != "" {
		return found[name].add(root, filepath.Join(root, special))
	}

	return nil
}

// read adds the licenses in dir and in the folders above it, up to root.
func (m *module) read(root, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && isLicense.MatchString(e.Name()) {
			if err := m.add(root, filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}

	if dir == root {
		return nil
	}
	return m.read(root, filepath.Dir(dir))
}

// isGo reports whether m is a Go module, with a version in the module proxy.
func (m *module) isGo() bool {
	return m.name != standardName
}

// add adds a license file, unless it has already been added.
func (m *module) add(root, path string) error {
	name, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	name = filepath.ToSlash(name)
	if slices.ContainsFunc(m.texts, func(f file) bool { return f.name == name }) {
		return nil
	}

	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	m.texts = append(m.texts, file{name: name, data: data})

	return nil
}

// knownLicenses maps words that identify a license to the SPDX ID of the license.
var knownLicenses = []struct{ words, id string }{
	{"Permission is hereby granted, free of charge, to any person obtaining a copy of this software", "MIT"},
	{"Neither the name of", "BSD-3-Clause"},
	{"Apache License Version 2.0, January 2004", "Apache-2.0"},
	{"SIL OPEN FONT LICENSE Version 1.1", "OFL-1.1"},
	{"The FreeType Project LICENSE", "FTL"},
}

// license returns the licenses of a module as an SPDX expression. If a license is unknown, it returns an error, so that
// someone reviews the license before the program is shipped.
func (m *module) license() (string, error) {
	var ids []string
	for _, text := range m.texts {
		words := strings.Join(strings.Fields(string(text.data)), " ")
		for _, known := range knownLicenses {
			if strings.Contains(words, known.words) && !slices.Contains(ids, known.id) {
				ids = append(ids, known.id)
			}
		}
	}
	if len(ids) == 0 {
		return "", fmt.Errorf("%s %s has no licence that is known: look at it, and add it to knownLicenses", m.name, m.version)
	}
	slices.Sort(ids)

	return strings.Join(ids, " AND "), nil
}

// notice returns the content of the file NOTICE.
func notice(modules []module) []byte {
	var b bytes.Buffer
	fmt.Fprint(&b, "perfagent is free software under the terms of the file LICENSE. The program contains the following works.\n")
	for _, m := range modules {
		for _, text := range m.texts {
			fmt.Fprintf(&b, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("-", 80), m.name, m.version, text.name, bytes.TrimSpace(text.data))
		}
	}

	return b.Bytes()
}
