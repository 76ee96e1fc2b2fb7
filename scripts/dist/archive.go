package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// A file is a file in a package, or a package.
type file struct {
	name string // slash-separated
	data []byte
	exec bool // whether it is a program
}

// mode returns the permissions of the file in every package.
func (f file) mode() os.FileMode {
	if f.exec {
		return 0o755
	}
	return 0o644
}

// tarball makes the archive for use without a package manager. It has a single folder, which contains everything.
func tarball(r *release, p platform) (file, error) {
	folder := fmt.Sprintf("perfagent_%s_linux_%s", r.version, p.go_)
	files := []file{r.programs[p.go_]}
	files = append(files, under("man/man1", r.man)...)
	files = append(files, under("completions", r.completions)...)
	files = append(files, r.documents...)

	var b bytes.Buffer
	err := compressed(&b, func(w io.Writer) error { return writeTar(w, under(folder, files), r.time) })

	return file{name: folder + ".tar.gz", data: b.Bytes()}, err
}

// under returns files with names below folder.
func under(folder string, files []file) []file {
	moved := slices.Clone(files)
	for i := range moved {
		moved[i].name = path.Join(folder, moved[i].name)
	}

	return moved
}

// compressed writes the output of write in gzip format, without a name or a time.
func compressed(w io.Writer, write func(io.Writer) error) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := write(z); err != nil {
		return err
	}

	return z.Close()
}

// writeTar writes files and their folders as a tar archive, owned by root.
func writeTar(w io.Writer, files []file, at time.Time) error {
	t := tar.NewWriter(w)
	for _, f := range withFolders(files) {
		header := tar.Header{Name: f.name, Mode: int64(f.mode()), Size: int64(len(f.data)), ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if f.data == nil {
			header.Name, header.Mode, header.Typeflag = f.name+"/", 0o755, tar.TypeDir
		}
		if err := t.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}

	return t.Close()
}

// withFolders returns files and their parent folders, sorted by name. Each file follows its parent folders. A folder
// has nil data.
func withFolders(files []file) []file {
	all := slices.Clone(files)
	seen := make(map[string]bool)
	for _, f := range files {
		for dir := path.Dir(f.name); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			all = append(all, file{name: dir})
		}
	}
	slices.SortFunc(all, func(a, b file) int { return cmp.Compare(a.name, b.name) })

	return all
}

// sums returns the file SHA256SUMS, which sha256sum -c can check.
func sums(files []file) file {
	sorted := slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.name, b.name) })
	var b bytes.Buffer
	for _, f := range sorted {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(f.data), f.name)
	}

	return file{name: "SHA256SUMS", data: b.Bytes()}
}

// write replaces the directory dir with one that contains files.
func write(dir string, files []file) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.name), f.data, f.mode()); err != nil {
			return err
		}
	}

	return nil
}
