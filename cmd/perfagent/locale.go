package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/perfagent/perfagent/internal/text"
)

// locale returns the name of the character locale: the first non-empty one of LC_ALL, LC_CTYPE and LANG, as in C
// libraries.
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

// inLocale returns a copy of s for output that people read. In the C and POSIX locales, its out and err convert the
// text to ASCII.
func (s streams) inLocale() streams {
	if name := locale(); name == "C" || name == "POSIX" {
		s.out, s.err = text.NewASCIIWriter(s.out), text.NewASCIIWriter(s.err)
	}
	return s
}

// rawOut returns stdout for formats that programs read (JSON, CSV, Markdown, HTML), which are UTF-8 in every locale.
func (s streams) rawOut() io.Writer { return rawWriter(s.out) }

// printJSON prints v as indented JSON, with terminal control characters escaped.
func (s streams) printJSON(v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.rawOut(), "%s\n", visibleJSON(data))

	return err
}

// rawWriter returns w without the conversion to ASCII that inLocale may have added.
func rawWriter(w io.Writer) io.Writer {
	if ascii, ok := w.(*text.ASCIIWriter); ok {
		return ascii.Unwrap()
	}
	return w
}
