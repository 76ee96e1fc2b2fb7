package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/internal/durable"
)

func newInstall(streams) *cobra.Command {
	return &cobra.Command{
		Use:   "install DIR",
		Short: "copy this program into a directory",
		Long: `Copy this program to DIR/perfagent. The container image contains nothing but
perfagent, so perfagent has to copy itself: an init container puts it into a
volume, and the job's container wraps its command with it.`,
		Example: `  perfagent install /opt/perfagent`,
		Hidden:  true, // only for the container image
		Args:    rangeArgs(1, 1, errors.New("one directory, please")),
		RunE: func(_ *cobra.Command, args []string) error {
			return install(filepath.Join(args[0], "perfagent"))
		},
	}
}

// install copies the running program to path, executable for all users.
func install(path string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("install: finding this program: %w", err)
	}
	program, err := os.Open(self)
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	defer program.Close()

	err = durable.WriteStream(path, true, func(w io.Writer) error {
		_, err := io.Copy(w, program)
		return err
	})
	if err == nil {
		err = os.Chmod(path, 0o755)
	}
	if err != nil {
		return fmt.Errorf("install: write %s: %w", path, err)
	}

	return nil
}
