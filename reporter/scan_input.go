package reporter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perfagent/perfagent/internal/text"
)

// bounded is the input of a decoder, which keeps the text of each value in memory.
type bounded struct {
	file  io.Reader
	limit int64 // of a value's size
	read  int64
	mark  int64 // where the value that is being read begins, or a little before
	err   error // of reading; io.EOF is none
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.read-b.mark > b.limit {
		tooLarge := fmt.Errorf("what begins here takes more than %d MiB: a node may have so much at most", b.limit>>20)
		b.err = &placed{b.mark, tooLarge}
		return 0, b.err
	}
	n, err := b.file.Read(p[:min(len(p), 1<<20)])
	b.read += int64(n)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// placed is an error with its place in the file, in bytes.
type placed struct {
	at  int64
	err error
}

func (p *placed) Error() string { return p.err.Error() }
func (p *placed) Unwrap() error { return p.err }

// offset returns where in its text an error of encoding/json arose, if it says so.
func offset(err error) int64 {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return max(0, kind.Offset-1)
	}
	return 0
}

// explain turns the errors of a reading into Read's errors, with the line.
func (s *scan) explain(err error) error {
	var wrong *placed
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &wrong):
		return s.inLine(wrong.at, text.Printable(wrong.Error()))
	case s.input.err != nil && errors.Is(err, s.input.err):
		return s.input.err
	case err == io.EOF:
		return s.inLine(s.size, cutOff)
	case !errors.As(err, &syntax):
		return err
	case errors.Is(syntax.Err, io.ErrUnexpectedEOF):
		return s.inLine(syntax.ByteOffset, cutOff)
	}
	if word := s.notFinite(syntax.ByteOffset); word != "" {
		return s.inLine(syntax.ByteOffset, word+notFiniteHint)
	}
	return s.inLine(syntax.ByteOffset, text.Printable(syntax.Err.Error()))
}

const cutOff = "the file ends in the middle (cut off?)"

const notFiniteHint = " is not JSON: Python wrote a number that could not be computed; write null or leave the key out"

// notFinite returns the word at which JSON broke off when it is one of those that
// Python writes for numbers which JSON lacks. at is where it begins, or what follows its sign.
func (s *scan) notFinite(at int64) string {
	window, from := make([]byte, len("-Infinity")), max(0, at-1)
	n, _ := s.file.ReadAt(window, from)
	before, rest := window[:min(n, int(at-from))], window[min(n, int(at-from)):n]
	for _, word := range []string{"NaN", "Infinity"} {
		if bytes.HasPrefix(rest, []byte(word)) {
			if string(before) == "-" {
				return "-" + word
			}
			return word
		}
	}
	return ""
}

// inLine says in which line something is wrong.
func (s *scan) inLine(at int64, what string) error {
	head := io.NewSectionReader(s.file, 0, min(at, s.size))
	buf := make([]byte, 64<<10)
	for line := 1; ; {
		n, err := head.Read(buf)
		line += bytes.Count(buf[:n], []byte{'\n'})
		if err != nil {
			return fmt.Errorf("line %d: %s", line, what)
		}
	}
}
