//go:build amd64 || arm64

package job

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/check"
)

// titled sets each of its arguments as the title in turn, and prints the command line that other processes see.
func titled() {
	CopyArgs()
	titles, environ := os.Args[1:], strings.Join(os.Environ(), "\n")
	for _, text := range titles {
		SetTitle(text)
		line, err := os.ReadFile("/proc/self/cmdline")
		fmt.Printf("%q %v\n", line, err)
	}
	fmt.Println(strings.Join(os.Args[1:], "|"), strings.Join(os.Environ(), "\n") == environ)
}

// canMoveTitle reports whether the kernel lets a process move its command line.
func canMoveTitle() bool {
	var size uint32
	_, _, errno := unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_MM, unix.PR_SET_MM_MAP_SIZE,
		uintptr(unsafe.Pointer(&size)), 0, 0, 0)
	return errno == 0
}

func TestSetTitle_ChangesCommandLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("words and ", 20) + "more"
	longest := "any " + strings.Repeat("x", 1000)
	titles := []string{"a title", long, longest, "", "the last one"}

	out := check.Value(command(t, "titled", "", titles...).Output())(t)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(titles)+1 {
		t.Fatalf("output %q, want %d lines", lines, len(titles)+1)
	}
	if want := strings.Join(titles, "|") + " true"; lines[len(titles)] != want {
		t.Errorf("arguments, and whether the environment is unchanged: %q, want %q", lines[len(titles)], want)
	}
	for i, text := range titles {
		var line string
		if _, err := fmt.Sscanf(lines[i], "%q <nil>", &line); err != nil {
			t.Fatalf("%q: %v", lines[i], err)
		}
		want := wordsWithin(text, len(title)-1)
		if !canMoveTitle() {
			line, want = strings.TrimRight(line, "\x00")+"\x00", text
		}
		if line != want+"\x00" {
			t.Errorf("SetTitle(%.40q): the command line is %q, want %q", text, line, want+"\x00")
		}
	}
}

func TestWordsWithin_CutsBetweenWords(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		0: "", 5: "", 9: "", 10: "perfagent:", 13: "perfagent:", 14: "perfagent: run", 24: "perfagent: run of",
		25: "perfagent: run of process", 29: "perfagent: run of process", 30: "perfagent: run of process 4711", 99: "perfagent: run of process 4711",
	} {
		if got := wordsWithin("perfagent: run of process 4711", n); got != want {
			t.Errorf("words within %d bytes: %q, want %q", n, got, want)
		}
	}
}
