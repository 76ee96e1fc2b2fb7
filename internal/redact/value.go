package redact

import "strings"

// namedValues finds values with secret names in s, such as NAME=VALUE, "NAME: VALUE" and "--NAME VALUE". before is the
// argument before s.
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

// isScriptOption reports whether arg announces a script as the next argument, as -c and -lc do.
func isScriptOption(arg string) bool {
	letters, found := strings.CutPrefix(arg, "-")
	return found && strings.HasSuffix(letters, "c") && !strings.HasPrefix(letters, "-")
}

// An argument is the text to be searched for values.
type argument struct {
	text   string
	script bool // a shell or an interpreter executes it
	header bool // it is the header of a request
}

// value returns the value of the name that is text[from:to]. The span is empty if there is none.
func (a argument) value(from, to int) span {
	s := a.text
	after := quoteAt(s[to:]) // the quote closes the name alone, as in JSON
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
		return span{begin, a.wordEnd(from, begin, around)}
	case strings.HasPrefix(rest, ":") && after != "":
		begin := skipBlanks(s, next+1)
		return span{begin, memberEnd(s, begin)}
	case strings.HasPrefix(s[to:], ": ") || a.header && strings.HasPrefix(s[to:], ":"):
		begin := skipBlanks(s, to+1)
		return span{begin, a.headerEnd(from, begin, around)}
	case s[from] == '-' && next > at && !isLongOption(rest):
		return span{next, a.wordEnd(from, next, around)}
	}

	return span{}
}

// wordEnd returns the end of the value of a variable or of an option. The name begins at from, the value at begin.
// around is the quote that encloses name and value together, or "".
func (a argument) wordEnd(from, begin int, around string) int {
	s := a.text
	switch {
	case from == 0 && !a.script:
		return len(s)
	case around != "":
		return quoteEnd(s, begin, around)
	}

	inQuery := from > 0 && (s[from-1] == '?' || s[from-1] == '&')
	i := begin
	for ; i < len(s) && !isBlank(s[i]) && !(inQuery && s[i] == '&'); i++ {
		switch {
		case s[i] == '\\':
			i++
		case isQuote(s[i]):
			if i > begin && (i+1 == len(s) || !isNameByte(s[i+1])) { // the quote was opened before the name
				return i
			}
			if end := quoteEnd(s, i+1, s[i:i+1]); end < len(s) {
				i = end
			}
		}
	}

	i = min(i, len(s))
	if a.script && i > begin && (s[i-1] == ';' || s[i-1] == ')') { // part of the shell's or Python's syntax
		i--
	}

	return i
}

// headerEnd returns where the value of a header ends: at the end of the quotes around it, of the line, or of the
// argument. The parameters are as for wordEnd.
func (a argument) headerEnd(from, begin int, around string) int {
	s := a.text
	switch {
	case from == 0 && !a.script:
		return len(s)
	case around != "":
		return quoteEnd(s, begin, around)
	}
	if n := strings.IndexByte(s[begin:], '\n'); n >= 0 {
		return begin + n
	}

	return len(s)
}

// memberEnd returns the end of the value of a JSON object's member, quotes included. The value begins at begin. If it
// is neither a string nor a word, it extends to the end of s.
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

// quoteEnd returns the position of the first quote in s from at on, or the end of s. A backslash hides the next byte.
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

// quoteAt returns the quotation mark that s begins with, including a preceding backslash, or "".
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
	for at < len(s) && isBlank(s[at]) {
		at++
	}

	return at
}
