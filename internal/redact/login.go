package redact

import (
	"io"
	"slices"
	"strconv"
	"strings"
)

// Logins returns the texts in args that may be the user and password (USER:PASSWORD) in an address. If the address is
// misspelled and so is not a URL, as in redis:/:PASSWORD@HOST, the login is everything between the first colon and the
// last @.
func Logins(args []string) []string {
	var out []string
	for _, arg := range args {
		found := userInfo(arg)
		if len(found) == 0 && !isPath(arg) {
			found = append(found, misspeltUserInfo(arg))
		}
		for _, at := range found {
			if login := arg[at.from:at.to]; login != "" && !slices.Contains(out, login) {
				out = append(out, login)
			}
		}
	}
	return out
}

// misspeltUserInfo returns the span of the user info in s, which may be a misspelled URL. The span is empty if there is
// none.
func misspeltUserInfo(s string) span {
	if hash := strings.LastIndexByte(s, '#'); hash >= 0 {
		_, nth, found := strings.Cut(s[hash:], "@")
		if found && strings.Trim(nth, "0123456789") == "" { // #RUN-ID@K
			s = s[:hash]
		}
	}
	before, rest, _ := strings.Cut(s, ":")
	at := strings.LastIndexByte(s, '@')
	if at < len(before) || strings.HasPrefix(rest, "//") && !strings.Contains(s[len(before)+1:at], ":") {
		return span{}
	}
	login := strings.TrimLeft(s[len(before)+1:at], `/\;:`)
	return span{at - len(login), at}
}

// isPath reports whether arg begins like a path.
func isPath(arg string) bool {
	return strings.HasPrefix(arg, ".") || strings.HasPrefix(arg, "/") && !strings.HasPrefix(arg, "//")
}

// A Writer masks the given logins (USER:PASSWORD) wherever an @ follows them.
type Writer struct {
	w        io.Writer
	replacer *strings.Replacer
}

// NewWriter returns a Writer that masks logins and writes to w.
func NewWriter(w io.Writer, logins []string) *Writer {
	var pairs []string
	for _, login := range logins {
		quoted := strconv.Quote(login)
		pairs = append(pairs, login+"@", mask+"@", quoted[1:len(quoted)-1]+"@", mask+"@")
	}
	return &Writer{w, strings.NewReplacer(pairs...)}
}

// Write implements io.Writer. It does not mask a login that is split between two calls.
func (w *Writer) Write(data []byte) (int, error) {
	if _, err := io.WriteString(w.w, w.replacer.Replace(string(data))); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Unwrap returns the underlying writer.
func (w *Writer) Unwrap() io.Writer { return w.w }
