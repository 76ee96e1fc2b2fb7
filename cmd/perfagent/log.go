package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger makes the log on stderr. On a console a line is as short as an error
// message; as JSON it has a time.
func newLogger(w io.Writer, level, format string) (*zap.Logger, error) {
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
	return zap.New(zapcore.NewCore(enc, zapcore.Lock(zapcore.AddSync(&safeWriter{w: w})), lvl)).Named("perfagent:"), nil
}

// safeWriter survives a stderr that nobody reads any more: by default the runtime
// lets SIGPIPE end a program that writes there (os/signal), also one whose job has
// yet to be started.
type safeWriter struct {
	w    io.Writer
	once sync.Once
}

func (s *safeWriter) Write(p []byte) (int, error) {
	s.once.Do(func() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) })
	return s.w.Write(p)
}
