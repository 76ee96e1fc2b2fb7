package redact

import (
	"slices"
	"strings"
	"unicode"
)

// namedValues returns the spans of values with secret names in s, such as NAME=VALUE, "NAME: VALUE" and "--NAME VALUE".
// before is the argument before s.
func namedValues(before, s string) []span {
	if !strings.ContainsAny(s, "=: \t\n") {
		return nil
	}

	t := argument{text: s, script: isScriptOption(before), header: before == "-H" || before == "--header"}
	var out []span
	for i := 0; i < len(s); {
		if !isNameByte(s[i]) {
			i++
			continue
		}

		from := i
		for i < len(s) && isNameByte(s[i]) {
			i++
		}
		if !isSecretName(s[from:i]) {
			continue
		}
		if value := t.value(from, i); value.from < value.to {
			out = append(out, value)
			i = value.to
		}
	}

	return out
}

// isScriptOption reports whether arg is an option with a script as its value, such as -c or -lc.
func isScriptOption(arg string) bool {
	letters, found := strings.CutPrefix(arg, "-")
	return found && strings.HasSuffix(letters, "c") && !strings.HasPrefix(letters, "-")
}

// An argument is the text to be searched for values.
type argument struct {
	text   string
	script bool // whether a shell or an interpreter executes it
	header bool // whether it is the header of a request
}

// value returns the span of the value that belongs to the name text[from:to]. The span is empty if there is none.
func (a argument) value(from, to int) span {
	s := a.text
	after := quoteAt(s[to:]) // a quote that encloses only the name, as in JSON
	at := to + len(after)
	if at < len(s) && s[at] == ']' {
		at++
	}
	around := ""
	if after == "" && from > 0 && isQuote(s[from-1]) {
		around = s[from-1 : from]
	}

	next := skipBlanks(s, at)
	rest := s[next:]
	switch {
	case strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "=="):
		begin := next + 1
		if next > at { // NAME = VALUE; but "NAME= COMMAND" is an empty value
			begin = skipBlanks(s, begin)
		}
		return span{begin, a.valueEnd(from, begin, around, false)}
	case strings.HasPrefix(rest, ":") && after != "":
		begin := skipBlanks(s, next+1)
		return span{begin, memberEnd(s, begin)}
	case strings.HasPrefix(s[to:], ": ") || a.header && strings.HasPrefix(s[to:], ":"):
		begin := skipBlanks(s, to+1)
		return span{begin, a.valueEnd(from, begin, around, true)}
	case s[from] == '-' && next > at && !isLongOption(rest):
		return span{next, a.valueEnd(from, next, around, false)}
	}

	return span{}
}

// valueEnd returns the end of the value of a variable or an option. If header is set, the value is the value of a
// header and extends to the end of the line. The name begins at from, and the value at begin. around is the quote that
// encloses both the name and the value, or "".
func (a argument) valueEnd(from, begin int, around string, header bool) int {
	s := a.text
	switch {
	case from == 0 && !a.script:
		return len(s)
	case around != "":
		return quoteEnd(s, begin, around)
	case header:
		line, _, _ := strings.Cut(s[begin:], "\n")
		return begin + len(line)
	}

	inQuery := from > 0 && (s[from-1] == '?' || s[from-1] == '&')
	i := begin
	for ; i < len(s) && !isBlank(s[i]) && !(inQuery && s[i] == '&'); i++ {
		switch {
		case s[i] == '\\':
			i++
		case isQuote(s[i]):
			if i > begin && (i+1 == len(s) || !isNameByte(s[i+1])) { // the quote began before the name
				return i
			}
			if end := quoteEnd(s, i+1, s[i:i+1]); end < len(s) {
				i = end
			}
		}
	}

	i = min(i, len(s))
	if a.script && i > begin && (s[i-1] == ';' || s[i-1] == ')') { // syntax of the shell or of Python
		i--
	}

	return i
}

// memberEnd returns the end of the value of a JSON object's member, including quotes. The value begins at begin. A
// value that is neither a string nor a word extends to the end of s.
func memberEnd(s string, begin int) int {
	if quote := quoteAt(s[begin:]); quote != "" {
		inside := begin + len(quote)
		return min(quoteEnd(s, inside, quote)+len(quote), len(s))
	}

	end := begin
	for end < len(s) && isNameByte(s[end]) && s[end] != '[' {
		end++
	}
	if end == begin || end < len(s) && !strings.ContainsRune(",}] \t\r\n", rune(s[end])) {
		return len(s)
	}

	return end
}

// quoteEnd returns the position of the first quote in s[at:], or the end of s. A backslash escapes the next byte.
func quoteEnd(s string, at int, quote string) int {
	for ; at < len(s); at++ {
		switch {
		case strings.HasPrefix(s[at:], quote):
			return at
		case s[at] == '\\':
			at++
		}
	}

	return len(s)
}

// quoteAt returns the quotation mark at the beginning of s, including a preceding backslash, or "".
func quoteAt(s string) string {
	n := 0
	if strings.HasPrefix(s, `\`) {
		n = 1
	}
	if len(s) > n && isQuote(s[n]) {
		return s[:n+1]
	}

	return ""
}

func isQuote(b byte) bool { return b == '"' || b == '\'' }

func isBlank(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

func skipBlanks(s string, at int) int {
	return len(s) - len(strings.TrimLeft(s[at:], " \t\n\r"))
}

// Words in the names of variables and options that mark their values as secret.
var (
	secretWords = []string{
		"password", "passwd", "passphrase", "token", "secret", "credential", "credentials", "authorization", "apikey",
	}
	secretKeys = []string{"api", "access", "private"} // secret only if "key" follows

	// A word that ends with one of these is also secret: PGPASSWORD.
	secretEnds = []string{"password", "passwd", "passphrase", "apikey", "accesskey", "secretkey", "privatekey"}
)

// isSecretName reports whether a value with this name is secret.
func isSecretName(name string) bool {
	before := ""
	for _, word := range words(name) {
		ends := func(end string) bool { return strings.HasSuffix(word, end) }
		switch {
		case slices.Contains(secretWords, word), slices.ContainsFunc(secretEnds, ends):
			return true
		case word == "key" && slices.Contains(secretKeys, before):
			return true
		}
		before = word
	}

	return false
}

// words splits name at non-letters and at capital letters, and returns the words in lower case. For "apiKey", "API_KEY"
// and "APIKey", it returns "api" and "key".
func words(name string) []string {
	var spaced []rune
	letters := []rune(name)
	for i, r := range letters {
		if i > 0 && isHump(letters, i) {
			spaced = append(spaced, ' ')
		}
		spaced = append(spaced, r)
	}
	notLetter := func(r rune) bool { return !unicode.IsLetter(r) }
	return strings.FieldsFunc(strings.ToLower(string(spaced)), notLetter)
}

// isHump reports whether a word begins at letters[i]: whether that is a capital letter next to a lower-case letter.
func isHump(letters []rune, i int) bool {
	return unicode.IsUpper(letters[i]) &&
		(!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
}

// isNameByte reports whether b may be part of a name or of the dashes before a name.
func isNameByte(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b >= 0x80 ||
		b == '_' || b == '-' || b == '.' || b == '['
}

// isSecretOption reports whether arg is an option that has a secret in the next argument as its value.
func isSecretOption(arg string) bool {
	return strings.HasPrefix(arg, "-") && !strings.ContainsFunc(arg, func(r rune) bool {
		return r < 0x80 && !isNameByte(byte(r))
	}) && isSecretName(arg)
}

// isLongOption reports whether arg is an option rather than the value of the previous option.
func isLongOption(arg string) bool {
	return arg == "--" || len(arg) > 2 && strings.HasPrefix(arg, "--") && unicode.IsLetter(rune(arg[2]))
}
