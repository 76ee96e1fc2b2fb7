//go:build wheel

// Command dist with the tag wheel makes only the wheel, for this machine. It needs no packaging libraries.
//
//	usage: dist CHECKOUT FOLDER
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: dist CHECKOUT FOLDER")
		os.Exit(2)
	}
	if err := makeWheel(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// makeWheel writes the wheel for this machine into a folder, and prints its name.
func makeWheel(checkout, folder string) error {
	i := slices.IndexFunc(platforms, func(p platform) bool { return p.go_ == runtime.GOARCH })
	if i < 0 || runtime.GOOS != "linux" {
		return fmt.Errorf("there is no wheel for %s/%s, only for Linux on x86_64 and aarch64", runtime.GOOS, runtime.GOARCH)
	}
	r, err := newRelease(checkout, platforms[i:i+1])
	if err != nil {
		return err
	}
	f, err := wheel(r, platforms[i])
	if err != nil {
		return err
	}
	fmt.Println(f.name)

	return os.WriteFile(filepath.Join(folder, f.name), f.data, f.mode())
}
