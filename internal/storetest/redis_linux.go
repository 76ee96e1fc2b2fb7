package storetest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/perfagent/perfagent/internal/testenv"
)

// Redis starts a Redis server with further arguments and returns its HOST:PORT. The server does not write to disk, and
// ends with the test.
func Redis(t testing.TB, arguments ...string) string {
	t.Helper()
	program, libraries := redisProgram(t)
	address := FreeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	arguments = append([]string{
		"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir(),
	}, arguments...)

	cmd := exec.Command(program, arguments...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+libraries)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })

	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if said = append(said, lines.Text()); strings.Contains(lines.Text(), "Ready to accept connections") {
			go io.Copy(io.Discard, out)
			return address
		}
	}
	t.Fatalf("the Redis server ended: %s", strings.Join(said, "\n"))
	return ""
}

// RedisSays sends command to the Redis server at address and returns the response. The server must not need a password.
func RedisSays(t testing.TB, address, command string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, command+"\r\nQUIT\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// redisProgram returns the path of the server and the directories of its libraries. The server is from Debian's
// packages below PERFAGENT_TEST_REDIS. If there is none, it is the installed server.
func redisProgram(t testing.TB) (program, libraries string) {
	t.Helper()
	root := os.Getenv("PERFAGENT_TEST_REDIS")
	program = filepath.Join(root, "usr", "bin", "redis-server")
	if _, err := os.Stat(program); root == "" || err != nil {
		return testenv.NeedsTool(t, "redis-server", "make test unpacks it, or apt-get install redis-server"), ""
	}

	dirs, err := filepath.Glob(filepath.Join(root, "usr", "lib", "*-linux-*"))
	if err != nil {
		t.Fatal(err)
	}
	return program, strings.Join(dirs, ":")
}

// FreeAddress returns a HOST:PORT of this machine with no listener.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
}
