//go:build unix

package mlflow

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/check"
)

// odd returns functions that create special or huge files, by name.
func odd(t *testing.T) map[string]func(path string) error {
	t.Helper()
	return map[string]func(string) error{
		"fifo":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"huge": func(path string) error {
			f, err := os.Create(path)
			if err != nil {
				return err
			}
			defer f.Close()
			return f.Truncate(1 << 40)
		},
	}
}

func TestNewConfig_ReadsNoSpecialOrHugeCredentials(t *testing.T) {
	t.Parallel()
	for name, create := range odd(t) {
		home := t.TempDir()
		path := filepath.Join(home, ".mlflow", "credentials")
		check.Must(t, os.Mkdir(filepath.Dir(path), 0o700))
		if err := create(path); err != nil {
			t.Logf("%s: %v", name, err) // not possible on every file system
			continue
		}
		_, err := NewConfig("http://h", env("HOME="+home))
		if name == "folder" {
			if err != nil {
				t.Errorf("NewConfig with a folder as credentials: %v, want no error", err)
			}
			continue
		}
		wantText(t, err, path)
	}
}

func TestNew_ReadsNoSpecialOrHugeCertificates(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	server := ca.server(loopback(), false)
	for name, create := range odd(t) {
		path := filepath.Join(t.TempDir(), name+".pem")
		if err := create(path); err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		for _, cfg := range []Config{{CAPath: path}, {ClientCertPath: path}} {
			cfg.URI = "https://h"
			_, err := New(cfg)
			wantText(t, err, path)
		}
		// In a folder with a valid certificate, the file is ignored.
		if err := os.Rename(path, filepath.Join(filepath.Dir(ca.file), name)); err != nil &&
			!strings.Contains(err.Error(), "cross-device") {
			t.Errorf("move %s next to a certificate: %v", name, err)
		}
	}
	check.Must(t, getRun(client(t, Config{URI: server.URL, CAPath: filepath.Dir(ca.file)})))
}
