package main

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/collector/marks"
)

func newMark(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mark TEXT...",
		Short: "mark this moment in the report of the run",
		Long: `Mark this moment in the report of the run: append a line to the file that
PERFAGENT_MARKS names. Outside perfagent, do nothing.

Exit code: 0, even if the mark could not be written, so that a mark never breaks
a script; 125 for incorrect usage.`,
		Example: `  perfagent mark epoch 3
  perfagent mark "$(wc -l <rows.csv) rows read"`,
		// The text may begin with a dash, and a mark must never make a script fail.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (args[0] == "-h" || args[0] == "--help") {
				return cmd.Help()
			}
			if len(args) > 0 && args[0] == "--" {
				args = args[1:]
			}
			if len(args) == 0 {
				return errors.New("no text: perfagent mark TEXT")
			}

			s.writeMark(marks.Line{Text: strings.Join(args, " ")})
			return nil
		},
	}

	return cmd
}

// writeMark appends l with the current time to the marks file of the enclosing perfagent, if there is one. A failure is
// printed as a warning.
func (s streams) writeMark(l marks.Line) {
	path := os.Getenv(marks.Variable)
	if path == "" {
		return
	}

	l.At = marks.UnixSeconds(time.Now())
	if err := marks.Append(path, l); err != nil {
		s.warn(err)
	}
}
