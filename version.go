// Package perfagent knows the version of this module. The packages below it do the work: see package agent for the
// program as a library, and cmd/perfagent for the command line.
package perfagent

import (
	_ "embed"
	"strings"
)

// version is the file VERSION. It is embedded, so that every build has it: make, go build, go install, and a program
// that uses a package of this module.
//
//go:embed VERSION
var version string

// Version returns the version of this module, in the form of PEP 440: "1.0.0".
func Version() string {
	return strings.TrimSuffix(version, "\n")
}
