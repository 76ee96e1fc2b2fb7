package agent

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
	"github.com/perfagent/perfagent/internal/testenv"
	"github.com/perfagent/perfagent/job"
)

// held returns the numbers of open descriptors and goroutines of this process.
func held(t *testing.T) (descriptors, goroutines int) {
	t.Helper()
	entries := check.Value(os.ReadDir("/proc/self/fd"))(t)
	return len(entries), runtime.NumGoroutine()
}

// A program may run perfagent repeatedly, so no run leaves a descriptor open or a goroutine behind.
func TestAgent_LeaksNoDescriptorsOrGoroutines(t *testing.T) {
	testenv.SkipIfShort(t, "seconds for its many runs")
	const rounds = 10
	o := Options{Out: filepath.Join(t.TempDir(), "out"), MLflow: Off, HTML: Never, Interval: MinInterval, Listen: "0"}
	o.Stdin, o.Stdout, o.Stderr = strings.NewReader(""), io.Discard, io.Discard
	script := noInterpreter(t)

	for name, once := range map[string]func(ctx context.Context) error{
		"Run": func(ctx context.Context) error {
			o := o
			o.Args = []string{"sh", "-c", "sleep 0.05; exit 3"}
			_, err := Run(ctx, o)
			return err
		},
		"Run of a command that cannot start": func(ctx context.Context) error {
			o := o
			o.Args = []string{script}
			if _, err := Run(ctx, o); !errors.Is(err, job.ErrNotFound) {
				return errors.Join(errors.New("the command was started"), err)
			}
			return nil
		},
		"Start": func(ctx context.Context) error {
			m, err := Start(ctx, o)
			if err != nil {
				return err
			}
			time.Sleep(5 * MinInterval)
			_, err = m.Stop()
			return err
		},
		"Sidecar": func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 5*MinInterval)
			defer cancel()
			_, err := Sidecar(ctx, o)
			return err
		},
	} {
		descriptors, goroutines := held(t)
		for range rounds {
			if err := once(t.Context()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}

		var d, g int
		for range 6000 { // a goroutine may take a moment to exit
			if d, g = held(t); d < descriptors+rounds && g < goroutines+rounds {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if d >= descriptors+rounds || g >= goroutines+rounds {
			t.Errorf("%s, %d times: descriptors grew from %d to %d, goroutines from %d to %d; want an increase below %d",
				name, rounds, descriptors, d, goroutines, g, rounds)
		}
	}
}
