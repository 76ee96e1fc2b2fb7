package host

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/procfile"
)

// maxCoreFiles is the largest number of files matching the pattern that are inspected in each directory.
const maxCoreFiles = 100

// FindCoreFiles returns the core files written since the given time on the file systems of dirs. It searches where
// core_pattern puts them, or in dirs if the pattern is relative to the working directory. written is false if the
// kernel writes no core files, or if the pattern cannot be read. The call may take long.
func FindCoreFiles(dirs []string, since time.Time) (cores []CoreFile, written bool) {
	data, err := procfile.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil {
		return nil, false
	}
	return findCoreFiles(string(bytes.TrimSpace(data)), dirs, since)
}

func findCoreFiles(pattern string, dirs []string, since time.Time) (cores []CoreFile, written bool) {
	if strings.HasPrefix(pattern, "|") || strings.HasPrefix(pattern, "@") { // dumps are passed to a program or a socket
		return nil, false
	}
	glob, seen := coreGlob(pattern), make(map[string]bool)
	for _, dir := range dirs {
		where := glob
		if !filepath.IsAbs(glob) {
			where = filepath.Join(escapeGlob(dir), glob)
		}
		for _, also := range []string{"", ".*"} { // kernel.core_uses_pid
			names, _ := filepath.Glob(where + also)
			for _, name := range names[:min(len(names), maxCoreFiles)] {
				if seen[name] {
					continue
				}
				seen[name] = true
				if c, ok := newCoreFile(name, dirs, since); ok {
					cores = append(cores, c)
				}
			}
		}
	}
	return cores, true
}

// coreGlob converts the kernel's core_pattern to a glob, with "*" for %p, %e and the like.
func coreGlob(pattern string) string {
	if pattern == "" {
		pattern = "core"
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] != '%':
			b.WriteString(escapeGlob(pattern[i : i+1]))
		case i+1 < len(pattern) && pattern[i+1] == '%':
			b.WriteByte('%')
			i++
		default:
			b.WriteByte('*')
			i++
		}
	}
	return b.String()
}

func escapeGlob(name string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(name)
}

// newCoreFile returns the core file at path. It reports false if path is not a core file, is older than since, or is
// not on the file system of any of dirs.
func newCoreFile(path string, dirs []string, since time.Time) (CoreFile, bool) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG ||
		time.Unix(st.Mtim.Unix()).Before(since) || !isCoreFile(path) {
		return CoreFile{}, false
	}
	c := CoreFile{File: path, MB: float64(st.Blocks) * 512 / mib}
	for _, dir := range dirs {
		var at unix.Stat_t
		if unix.Stat(dir, &at) == nil && at.Dev == st.Dev {
			c.Paths = append(c.Paths, dir)
		}
	}
	return c, len(c.Paths) > 0
}

// isCoreFile reports whether the file at path is an ELF file of type ET_CORE. It also accepts a file that was truncated
// before the type, as on a full disk.
func isCoreFile(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 18)
	if n, _ := io.ReadFull(f, head); n < len(head) {
		return strings.HasPrefix("\x7fELF", string(head[:min(n, 4)]))
	}
	const etCore = 4
	return string(head[:4]) == "\x7fELF" && binary.NativeEndian.Uint16(head[16:]) == etCore
}
