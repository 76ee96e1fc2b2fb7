package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
)

// locale returns the name of the locale for characters. As in C libraries, the first of three variables that is set
// and not empty decides.
func locale() string {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := os.Getenv(name); v != "" {
			return v
		}
	}

	return ""
}

// isUTF8Locale reports whether the locale uses UTF-8.
func isUTF8Locale() bool {
	name := strings.ToLower(locale())
	return strings.Contains(name, "utf-8") || strings.Contains(name, "utf8")
}

// inLocale returns the streams of a command line: out and err take text for people, and write it in plain ASCII where
// the locale has nothing else.
func (s streams) inLocale() streams {
	if name := locale(); name == "C" || name == "POSIX" {
		s.out, s.err = text.NewASCIIWriter(s.out), text.NewASCIIWriter(s.err)
	}
	return s
}

// rawOut returns stdout for what programs read, which is UTF-8 in every locale: JSON, CSV, Markdown, HTML.
func (s streams) rawOut() io.Writer { return rawWriter(s.out) }

// printJSON prints a value as indented JSON, with what a terminal would obey written as escapes.
func (s streams) printJSON(v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.rawOut(), "%s\n", visibleJSON(data))

	return err
}

// rawWriter returns the writer that takes text as it is.
func rawWriter(w io.Writer) io.Writer {
	if ascii, ok := w.(*text.ASCIIWriter); ok {
		return ascii.Unwrap()
	}
	return w
}
