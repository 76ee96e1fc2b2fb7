//go:build !wheel

// Command dist makes perfagent's packages for "make dist", in the folder dist of a checkout. It is a separate module,
// so that the program does not depend on packaging libraries.
//
// The output depends only on the commit and the version of Go, not on the location of the checkout or the time. With a
// warm module cache, the command needs no network.
//
//	usage: dist CHECKOUT
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dist CHECKOUT")
		os.Exit(2)
	}
	if err := makeDist(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// makeDist replaces the folder dist of a checkout with one that contains all packages.
func makeDist(checkout string) error {
	r, err := newRelease(checkout, platforms)
	if err != nil {
		return err
	}
	if err := r.ask(); err != nil {
		return err
	}

	var packages []file
	for _, p := range platforms {
		for _, pack := range []func(*release, platform) (file, error){tarball, deb, rpm, wheel} {
			f, err := pack(r, p)
			if err != nil {
				return err
			}
			packages = append(packages, f)
		}
	}
	for _, pack := range []func(*release) (file, error){ociLayout, spdxDocument} {
		f, err := pack(r)
		if err != nil {
			return err
		}
		packages = append(packages, f)
	}

	return write(filepath.Join(checkout, "dist"), append(packages, sums(packages)))
}
