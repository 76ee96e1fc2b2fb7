package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/perfagent/perfagent/collector/intake"
	"github.com/perfagent/perfagent/collector/intake/wire"
	"github.com/perfagent/perfagent/collector/marks"
	"github.com/perfagent/perfagent/internal/text"
	"github.com/perfagent/perfagent/job"
)

// An operation is the JSON record of a command that ran.
type operation struct {
	Name   string  `json:"op"`
	Key    string  `json:"key,omitempty"`
	Millis float64 `json:"ms"`
	OK     bool    `json:"ok"`
	At     float64 `json:"ts"` // end, in Unix seconds
}

func newOp(s streams) *cobra.Command {
	var op operation
	cmd := &cobra.Command{
		Use:   "op [flags] [-- COMMAND [ARG...]]",
		Short: "record a command as an operation of the run",
		Long: `Run a command inside perfagent run --ops, and add it to the report as an
operation: how long it took, and whether it failed. The command's exit code,
streams, signals and terminal are passed through unchanged.

Without a command, send the lines of standard input to the report: StatsD lines
and JSON records, each as a separate datagram.

Outside perfagent run --ops the command runs normally, and a line on standard
error says that it was not recorded. Without a command the input is discarded.

Exit code: the command's own, as in perfagent run; 0 without a command, even if
the lines could not be sent; 125 for incorrect usage.`,
		Example: `  perfagent op -- make -j8
  perfagent op --op store.get --key k1 -- curl -sSO https://host/k1
  echo "rows:5|c" | perfagent op`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f := cmd.Flags()
			switch {
			case f.Changed("op") && op.Name == "":
				return errors.New("--op: the name is empty")
			case len(args) > 0:
				return s.runOperation(op, args)
			case cmd.ArgsLenAtDash() == 0 || f.Changed("op") || f.Changed("key"):
				return errors.New("no command: perfagent op [--op NAME] [--key KEY] -- COMMAND [ARG...]")
			}
			s.sendLines()
			return nil
		},
	}

	f := cmd.Flags()
	f.SetInterspersed(false)
	f.StringVar(&op.Name, "op", "", "`NAME` of the operation (default: the command's name, without its directory)")
	f.StringVar(&op.Key, "key", "", "what the operation worked on; the report also shows times for each `KEY`")

	return cmd
}

// runOperation runs the command args, sends its duration to the enclosing perfagent, and returns its exit code as an
// error. It handles signals and streams as perfagent run does. A command that could not be started is recorded as
// failed.
func (s streams) runOperation(op operation, args []string) error {
	var status job.Status
	command, err := s.resolve(args)
	if err == nil {
		status, err = s.runCommand("op", command)
	}

	if op.Name == "" {
		op.Name = filepath.Base(args[0])
	}
	op.Name, op.Key = text.Prefix(op.Name, wire.MaxText), text.Prefix(op.Key, wire.MaxText)
	op.Millis = status.End.Sub(status.Start).Seconds() * 1000
	op.OK = err == nil && status.ExitCode == 0
	op.At = marks.UnixSeconds(time.Now())
	s.send(op)

	return finishCommand(status, err)
}

// send sends op to the enclosing perfagent. If that fails or there is none, it prints a warning.
func (s streams) send(op operation) {
	line, _ := json.Marshal(op) // cannot fail: op has no infinity or NaN
	send, err := intake.Dial()
	switch {
	case err != nil:
	case send == nil:
		err = fmt.Errorf("%s was not recorded: it did not run inside perfagent run --ops", op.Name)
	default:
		err = send(line)
	}
	if err != nil {
		s.warn(err)
	}
}

// sendLines sends each line of stdin to the enclosing perfagent, if there is one. After a failure it prints a warning.
// Lines that are not sent are read and discarded, so that the writer never gets SIGPIPE.
func (s streams) sendLines() {
	in := s.in
	if !s.embedded {
		in = os.Stdin
	}
	send, err := intake.Dial()
	if send != nil {
		err = eachLine(in, send)
	}
	if err != nil {
		s.warn(err)
	}
	if err != nil || send == nil {
		_, _ = io.Copy(io.Discard, in)
	}
}

// eachLine calls use with each non-empty line of in, without its line end, until use fails. A line that does not fit
// into a datagram is cut to the maximum datagram size, so that perfagent counts it as too long.
func eachLine(in io.Reader, use func(line []byte) error) error {
	lines := bufio.NewReaderSize(in, intake.MaxDatagram)
	beginning := true
	for {
		line, err := lines.ReadSlice('\n')
		more := errors.Is(err, bufio.ErrBufferFull)
		if line = bytes.TrimRight(line, "\r\n"); beginning && len(line) > 0 {
			if err := use(line); err != nil {
				return err
			}
		}
		if err != nil && !more {
			return nil // EOF, or a read error, which has the same effect
		}
		beginning = !more
	}
}
