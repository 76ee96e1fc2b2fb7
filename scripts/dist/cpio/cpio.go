// Package cpio replaces the package of the same name that rpmpack uses for the payload of an RPM. It has the part of
// the API that rpmpack uses. rpmpack passes absolute names, but this package writes relative names like rpmbuild:
// "./usr/bin/perfagent". rpm reads both forms. However, "rpm2cpio … | cpio -id" would unpack files with absolute names
// over the system instead of into the current folder.
package cpio

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// A FileMode is a file type with permissions, as in stat(2).
type FileMode int64

// A Header describes one file.
type Header struct {
	Name  string
	Mode  FileMode
	Size  int64
	Links int
}

// A Writer writes an archive in the "newc" format.
type Writer struct {
	w     io.Writer
	inode int
	left  int64 // number of bytes missing from the current file
	pad   int64 // number of zeros to write after the current file
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// WriteHeader begins a file. Write then writes its content. WriteHeader returns an error if the previous file is
// incomplete.
func (w *Writer) WriteHeader(h *Header) error {
	w.inode++
	return w.header("."+strings.TrimPrefix(h.Name, "."), h, w.inode)
}

// header pads the previous file and writes a header.
func (w *Writer) header(name string, h *Header, inode int) error {
	if w.left > 0 {
		return fmt.Errorf("cpio: %d bytes are missing before %s", w.left, name)
	}
	if h.Size < 0 || h.Size > 1<<32-1 {
		return fmt.Errorf("cpio: %s has %d bytes, which the format cannot say", name, h.Size)
	}

	b := bytes.NewBuffer(make([]byte, w.pad))
	b.WriteString("070701")
	for _, field := range []int64{
		int64(inode), int64(h.Mode), 0, 0, int64(h.Links), 0, h.Size, 0, 0, 0, 0, int64(len(name) + 1), 0,
	} {
		fmt.Fprintf(b, "%08x", field)
	}
	b.WriteString(name + "\x00")
	b.Write(make([]byte, padding(110+len(name)+1)))
	w.left, w.pad = h.Size, padding(h.Size)
	_, err := w.w.Write(b.Bytes())

	return err
}

// padding returns the number of bytes between n and the next multiple of four.
func padding[T int | int64](n T) int64 { return int64((4 - n%4) % 4) }

// Write writes content of the current file.
func (w *Writer) Write(p []byte) (int, error) {
	if int64(len(p)) > w.left {
		return 0, fmt.Errorf("cpio: %d bytes more than the header said", int64(len(p))-w.left)
	}
	n, err := w.w.Write(p)
	w.left -= int64(n)

	return n, err
}

// Close ends the archive, but not the underlying writer.
func (w *Writer) Close() error {
	if err := w.header("TRAILER!!!", &Header{Links: 1}, 0); err != nil {
		return err
	}
	_, err := w.w.Write(make([]byte, w.pad))

	return err
}
