//go:build e2e

package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// shellsOnTerminals are the shells under test. Each has the arguments that start it without the user's settings, and
// the commands that load the completion.
var shellsOnTerminals = []struct {
	name, install string
	args          []string
	setup         string
}{
	{"bash", "apt-get install bash-completion", []string{"--norc", "--noprofile", "-i"},
		". /usr/share/bash-completion/bash_completion; . <(perfagent completion bash)"},
	{"zsh", "apt-get install zsh", []string{"-f", "-i"},
		"autoload -U compinit; compinit -u -d $PWD/dump; . <(perfagent completion zsh); compdef _perfagent perfagent"},
	{"fish", "apt-get install fish", []string{"--no-config", "-i"}, "perfagent completion fish | source"},
}

// In every shell, Tab completes a word that has only one completion.
func TestE2E_Completion_TabCompletesWordInEveryShell(t *testing.T) {
	t.Parallel()
	bin := filepath.Dir(clitest.Binary(t))
	for _, shell := range shellsOnTerminals {
		t.Run(shell.name, func(t *testing.T) {
			t.Parallel()
			cmd := clitest.Command(t, testenv.NeedsTool(t, shell.name, shell.install), shell.args...)
			if shell.name == "bash" && !clitest.Exists("/usr/share/bash-completion/bash_completion") {
				testenv.SkipOrFail(t, "bash-completion: "+shell.install)
			}
			programs, run := filepath.Join(cmd.Dir, "programs"), filepath.Join(cmd.Dir, "perfagent-out", "nightly-4711")
			check.Must(t, errors.Join(os.Mkdir(programs, 0o755), os.MkdirAll(run, 0o755)))
			clitest.Write(t, filepath.Join(programs, "trainer-of-models"), "#!/bin/sh\n", 0o755)
			clitest.Write(t, filepath.Join(cmd.Dir, "trainer-notes"), "", 0o644) // not a command
			clitest.Write(t, filepath.Join(run, "node-0.json"), "{}", 0o644)
			cmd.Env = append(cmd.Env, "PATH="+programs+":"+bin+":"+os.Getenv("PATH"), "TERM=dumb", "HOME="+cmd.Dir, "PS1=$ ")

			m := clitest.OnTerminal(t, cmd)
			m.Send(shell.setup + "; echo set''up\n")
			m.Expect("setup")
			for typed, completed := range map[string]string{
				"perfagent sidec":                  "perfagent sidecar",
				"perfagent run -- trainer":         "perfagent run -- trainer-of-models",
				"perfagent show nigh":              "perfagent show nightly-4711",
				"perfagent run --cgroup cr":        "perfagent run --cgroup create",
				"perfagent show --format t":        "perfagent show --format text",
				"perfagent metrics psi_memory_f":   "perfagent metrics psi_memory_full_avg_pct",
				"perfagent completion pow":         "perfagent completion powershell",
				"perfagent help pru":               "perfagent help prune",
				"perfagent run -- cat trainer-not": "perfagent run -- cat trainer-notes",
			} {
				m.Send("echo " + "go''on; : " + "\n")
				m.Expect("goon")
				m.Send(typed + "\t")
				m.Expect(completed[len(typed):])
				m.Send("\x15") // Ctrl-U deletes the line
			}
		})
	}
}
