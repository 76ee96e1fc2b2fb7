// Package perfagent provides the version of this module. See package agent for the program as a library, and
// cmd/perfagent for the command line.
package perfagent

import (
	_ "embed"
	"strings"
)

// version is the contents of the file VERSION. It is embedded, so every build has it: by make, go build or go install,
// and in programs that use a package of this module.
//
//go:embed VERSION
var version string

// Version returns the version of this module in PEP 440 form: "1.0.0".
func Version() string {
	return strings.TrimSuffix(version, "\n")
}
