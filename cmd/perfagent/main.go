// Command perfagent says what a job really used on this node: it wraps a command
// (perfagent run -- CMD), or watches the host beside one (perfagent sidecar), and
// leaves a report. See the README, or perfagent help.
package main

import "os"

func main() {
	os.Exit(execute(os.Args[1:], streams{out: os.Stdout, err: &patientWriter{w: os.Stderr}}))
}
