package storetest

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/testenv"
)

// An S3Server is a real S3 server with the bucket "runs".
type S3Server struct {
	Endpoint string // http://HOST:PORT
	log      string
}

// S3 starts a versitygw that stores its data in a directory of the test. The server ends with the test.
func S3(t testing.TB) *S3Server {
	t.Helper()
	program := filepath.Join(os.Getenv("PERFAGENT_TEST_S3"), "versitygw")
	if _, err := os.Stat(program); err != nil {
		testenv.SkipOrFail(t, "needs a server of S3: make test builds versitygw; or name the directory that has it in PERFAGENT_TEST_S3")
	}
	dir, address := t.TempDir(), FreeAddress(t)
	if err := os.MkdirAll(filepath.Join(dir, "data", "runs"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &S3Server{Endpoint: "http://" + address, log: filepath.Join(dir, "log")}

	cmd := exec.Command(program, "--access", S3KeyID, "--secret", S3Secret, "--port", address, "--access-log", s.log,
		"posix", filepath.Join(dir, "data"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })

	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if said = append(said, lines.Text()); strings.Contains(lines.Text(), s.Endpoint) {
			go io.Copy(io.Discard, out)
			s.wait(t, address)
			return s
		}
	}
	t.Fatalf("the S3 server ended: %s", strings.Join(said, "\n"))
	return nil
}

// wait waits until the server listens. It is necessary because the server prints its address before it listens.
func (s *S3Server) wait(t testing.TB, address string) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return
		}
		if time.Since(begun) > 5*time.Minute {
			t.Fatal(err)
		}
	}
}

// Address returns the address of the store in the given folder of the bucket.
func (s *S3Server) Address(folder string) string {
	return "s3://runs/" + folder + "?endpoint=" + s.Endpoint
}

// Requests returns the number of requests of the given kind, such as GetObject, in the server's log.
func (s *S3Server) Requests(t testing.TB, kind string) int {
	t.Helper()
	data, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(data), " s3_"+kind+" ")
}
