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

	"go.uber.org/zap/zapcore"

	"github.com/perfagent/perfagent/internal/patience"
	"github.com/perfagent/perfagent/internal/text"
)

// logger writes lines to stderr through zap's core. Package zap itself is left out:
// its loggers stand between a text and the core without a use for us, and every
// package that is linked in is initialized at every start, while the job waits.
type logger struct{ core zapcore.Core }

// Debug, Info, Warn and Error log a text; control characters in it are shown as escapes.
func (l *logger) Debug(words string) { l.write(zapcore.DebugLevel, words) }
func (l *logger) Info(words string)  { l.write(zapcore.InfoLevel, words) }
func (l *logger) Warn(words string)  { l.write(zapcore.WarnLevel, words) }
func (l *logger) Error(words string) { l.write(zapcore.ErrorLevel, words) }

// enabledInfo tells whether Info says anything.
func (l *logger) enabledInfo() bool { return l.core.Enabled(zapcore.InfoLevel) }

func (l *logger) write(level zapcore.Level, words string) {
	if !l.core.Enabled(level) {
		return
	}
	// A stderr that cannot be written is nobody's concern: there is no other place to say it.
	_ = l.core.Write(zapcore.Entry{Level: level, Time: time.Now(), LoggerName: "perfagent:", Message: text.Printable(words)}, nil)
}

// newLogger makes the log on stderr. On a console a line is as short as an error
// message; as JSON it has a time.
func newLogger(w io.Writer, level, format string) (*logger, error) {
	lvl, err := zapcore.ParseLevel(level)
	if err != nil || lvl > zapcore.ErrorLevel {
		return nil, fmt.Errorf("--log-level: %q is not debug, info, warn or error", level)
	}
	cfg := zapcore.EncoderConfig{MessageKey: "msg", LevelKey: "level", EncodeLevel: zapcore.LowercaseLevelEncoder,
		EncodeDuration: zapcore.StringDurationEncoder, LineEnding: "\n"}
	var enc zapcore.Encoder
	switch format {
	case "console":
		cfg.NameKey, cfg.ConsoleSeparator = "name", " "
		enc = zapcore.NewConsoleEncoder(cfg)
	case "json":
		cfg.TimeKey, cfg.EncodeTime = "ts", zapcore.RFC3339NanoTimeEncoder
		enc = zapcore.NewJSONEncoder(cfg)
	default:
		return nil, fmt.Errorf("--log-format: %q is not console or json", format)
	}
	return &logger{zapcore.NewCore(enc, zapcore.AddSync(w), lvl)}, nil
}

// patientWriter writes to a stderr that may be read by nobody. By default the
// runtime lets SIGPIPE end a program that writes there (os/signal), also one whose
// job has yet to be started; and a full pipe would hold the job's start or its exit
// code for as long as its reader likes.
type patientWriter struct {
	w    io.Writer
	once sync.Once
	stop atomic.Bool // a write hangs: say no more
}

var errNobodyReads = errors.New("nobody reads it")

func (p *patientWriter) Write(data []byte) (int, error) {
	p.once.Do(func() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) })
	if p.stop.Load() {
		return 0, errNobodyReads
	}
	words := bytes.Clone(data)
	err, ok := patience.Ask(time.Second, func() error {
		_, err := p.w.Write(words)
		return err
	})
	if !ok {
		p.stop.Store(true)
		return 0, errNobodyReads
	}
	return len(data), err
}
