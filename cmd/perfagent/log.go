package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/perfagent/perfagent/internal/text"
)

// A printableCore escapes control characters in log messages.
type printableCore struct{ zapcore.Core }

func (c printableCore) With(fields []zapcore.Field) zapcore.Core {
	return printableCore{c.Core.With(fields)}
}

func (c printableCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c printableCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	e.Message = text.Printable(e.Message)
	return c.Core.Write(e, fields)
}

// newLogger returns a logger that writes to w (stderr). In the console format, errors and warnings look like
// perfagent's other messages. In the JSON format, lines have a timestamp and are UTF-8 in every locale.
func newLogger(w io.Writer, level, format string) (*zap.Logger, error) {
	lvl, err := zapcore.ParseLevel(level)
	if err != nil || lvl > zapcore.ErrorLevel {
		return nil, fmt.Errorf("--log-level: %q is not debug, info, warn or error", level)
	}

	cfg := zapcore.EncoderConfig{MessageKey: "msg", LevelKey: "level", EncodeLevel: consolePrefix,
		EncodeDuration: zapcore.StringDurationEncoder, LineEnding: "\n"}
	var enc zapcore.Encoder
	switch format {
	case "console":
		cfg.ConsoleSeparator = " "
		enc = zapcore.NewConsoleEncoder(cfg)
	case "json":
		w = rawWriter(w)
		cfg.TimeKey, cfg.EncodeTime, cfg.EncodeLevel = "ts", zapcore.RFC3339NanoTimeEncoder, zapcore.LowercaseLevelEncoder
		enc = zapcore.NewJSONEncoder(cfg)
	default:
		return nil, fmt.Errorf("--log-format: %q is not console or json", format)
	}

	core := printableCore{zapcore.NewCore(enc, zapcore.AddSync(w), lvl)}
	// A failure to write to stderr is ignored, because there is no other place to report it.
	discard := zap.ErrorOutput(zapcore.AddSync(io.Discard))

	return zap.New(core, discard), nil
}

// consolePrefix writes the prefix for level: "perfagent:" for errors, and "perfagent:" with the level for others, as in
// "perfagent: warning:".
func consolePrefix(level zapcore.Level, line zapcore.PrimitiveArrayEncoder) {
	line.AppendString("perfagent:")
	switch level {
	case zapcore.ErrorLevel:
	case zapcore.WarnLevel:
		line.AppendString("warning:")
	default:
		line.AppendString(level.String() + ":")
	}
}

// A timeoutWriter gives up on a stderr that is not read. Without it, a closed stderr would kill perfagent with SIGPIPE
// (see os/signal), even before the job has started, and a full pipe would delay the job's start or exit code until the
// reader continues.
type timeoutWriter struct {
	w    io.Writer
	once sync.Once
	stop atomic.Bool // set after a write that hung; later writes fail immediately
}

var errNotRead = errors.New("it is not read")

func (p *timeoutWriter) Write(data []byte) (int, error) {
	p.once.Do(func() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) })
	if p.stop.Load() {
		return 0, errNotRead
	}

	words, done := bytes.Clone(data), make(chan error, 1)
	go func() {
		_, err := p.w.Write(words)
		done <- err
	}()

	select {
	case err := <-done:
		return len(data), err
	case <-time.After(time.Second):
		p.stop.Store(true)
		return 0, errNotRead
	}
}
