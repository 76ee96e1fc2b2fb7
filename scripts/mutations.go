//go:build ignore

// Mutations runs the tests of packages with one line of the program changed at a time, and prints the changes that no
// test detected. testdata/mutations.tsv lists the changes: FILE, OLD, NEW, PACKAGE. The files themselves are not
// modified.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	missed, err := run("testdata/mutations.tsv")
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutations:", err)
	}
	if err != nil || missed > 0 {
		os.Exit(1)
	}
}

func run(list string) (missed int, err error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "mutations")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)

	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i, line := range lines {
		f := strings.Split(line, "\t")
		if len(f) != 4 {
			return missed, fmt.Errorf("%s:%d: not FILE, OLD, NEW, PACKAGE", list, i+1)
		}
		result := "caught"
		switch caught, err := try(dir, f[0], f[1], f[2], f[3]); {
		case err != nil:
			result = "NOT TRIED: " + err.Error() + ":"
			missed++
		case !caught:
			result = "NOT NOTICED"
			missed++
		}
		fmt.Printf("%-11s %s: %s\n", result, f[0], f[2])
	}
	fmt.Printf("%d of %d changes were noticed\n", len(lines)-missed, len(lines))
	return missed, nil
}

// try reports whether the tests of pkg fail if the only occurrence of old in file is replaced with new.
func try(dir, file, old, new, pkg string) (caught bool, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	if n := strings.Count(string(text), old); n != 1 {
		return false, fmt.Errorf("%s has %q %d times, want once", file, old, n)
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), old, new, 1)), 0o644); err != nil {
		return false, err
	}
	original, err := filepath.Abs(file)
	if err != nil {
		return false, err
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return false, err
	}
	if err := os.WriteFile(overlay, data, 0o644); err != nil {
		return false, err
	}

	out, err := exec.Command("go", "test", "-vet=off", "-overlay", overlay, pkg).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && strings.Contains(string(out), "--- FAIL"):
		return true, nil
	case errors.As(err, &exit):
		return false, fmt.Errorf("no test failed, but go test did: %s", out)
	}
	return false, err
}
