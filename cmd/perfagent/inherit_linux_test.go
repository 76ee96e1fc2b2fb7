package main

import (
	"os/exec"
	"runtime"
	"testing"
)

// What was ignored or closed when perfagent was executed is so in the job, as it
// would be without us.
func TestJobInheritsWhatWasIgnoredAndClosed(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("no entry of our own on " + runtime.GOARCH + ": see docs/limits.md")
	}
	const job = `grep SigIgn /proc/$$/status; for fd in 0 1 2; do [ -e /proc/$$/fd/$fd ] && echo $fd; done; true`
	for name, surroundings := range map[string]string{
		"as usual":         ``,
		"nohup":            `trap "" HUP`,
		"background job":   `trap "" INT QUIT`,
		"everything":       `trap "" HUP INT QUIT PIPE TERM USR1 USR2 ALRM TSTP`,
		"no stdin":         `exec <&-`,
		"no stderr":        `exec 2>&-`,
		"no stdin, no INT": `trap "" INT TERM; exec <&-`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(args ...string) string {
				cmd := exec.Command("sh", append([]string{"-c", surroundings + "\n" + `exec "$@"`, "sh"}, args...)...)
				cmd.Dir = t.TempDir()
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v: %v", args, err)
				}
				return string(out)
			}
			want, got := run("sh", "-c", job), run(binary(t), "run", "--", "sh", "-c", job)
			if got != want {
				t.Errorf("with perfagent:\n%swithout:\n%s", got, want)
			}
		})
	}
}
