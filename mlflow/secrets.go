package mlflow

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// secretsOf matches what must not be in any text, in all the forms in which a server may send it back, also where one
// form is within another; nil when there is no secret. To hide what is shorter than four characters would only make the
// texts unreadable. User names are hidden in another way (hideWord).
func secretsOf(cfg Config) (*regexp.Regexp, error) {
	var all []string
	for _, s := range []string{cfg.Password, cfg.Token} {
		all = append(all, s)
		if line := oneLine(s); line != s {
			all = append(all, line)
		}
	}
	if cfg.basic() {
		all = append(all, base64.StdEncoding.EncodeToString([]byte(cfg.Username+":"+cfg.Password)))
	}
	all = slices.DeleteFunc(all, func(s string) bool { return len(s) < 4 })
	if len(all) == 0 {
		return nil, nil
	}
	for i, s := range all {
		all[i] = formsOf(s)
	}
	re, err := regexp.Compile(strings.Join(all, "|"))
	if err != nil {
		return nil, errors.New("the password or the token is too long") // err quotes it
	}
	re.Longest() // one may be a part of another
	return re, nil
}

// Patterns of what begins an escape. What is escaped twice has more than one backslash, %25 for a percent sign, or &amp;
// for an ampersand.
const (
	percentSign = `%(?:25)*`
	ampersand   = `&(?:amp;)*`
	backslash   = `(?:\\|` + percentSign + `5c|` + ampersand + `#(?:0*92|x0*5c);|` + ampersand + `bsol;)`
)

// formsOf is a pattern for a text as it is, and escaped for URLs, JSON, Python, Go or HTML, or for one after the other.
// What most tokens consist of is escaped nowhere.
func formsOf(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		char := s[:n]
		s = s[n:]
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-._~", r)) {
			b.WriteString(regexp.QuoteMeta(char))
			continue
		}
		b.WriteString("(?i:" + strings.Join(append(numericForms(r, char), namedForms(r)...), "|") + ")")
	}
	return b.String()
}

// numericForms are the patterns for a character by its number or its bytes, in hexadecimal digits of either case; and
// for the character itself, which may have backslashes before it.
func numericForms(r rune, char string) []string {
	var percent, bytes string
	for i := range len(char) {
		percent += percentSign + fmt.Sprintf(`%02x`, char[i])
		bytes += backslash + fmt.Sprintf(`+x%02x`, char[i])
	}
	forms := []string{backslash + "*" + percent, bytes}
	if r == utf8.RuneError && len(char) == 1 {
		return append(forms, `\x{fffd}`, "") // no UTF-8: replaced, or dropped
	}
	forms = append(forms, backslash+"*"+regexp.QuoteMeta(char),
		backslash+fmt.Sprintf(`+(?:x%02x|u%04x|u%08x|u\{0*%x\})`, r, r, r, r),
		backslash+"*"+ampersand+fmt.Sprintf(`#(?:0*%d|x0*%x);`, r, r))
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		forms = append(forms, backslash+fmt.Sprintf(`+u%04x`, high)+backslash+fmt.Sprintf(`+u%04x`, low))
	}
	return forms
}

// namedForms are the patterns for a character that has a short form of its own.
func namedForms(r rune) []string {
	named := func(name string) string { return backslash + "*" + ampersand + name + ";" }
	switch r {
	case '"':
		return []string{named("quot")}
	case '\'':
		return []string{named("apos")}
	case '<':
		return []string{named("lt")}
	case '>':
		return []string{named("gt")}
	case '&':
		return []string{"&(?:amp;)+"}
	case '\\':
		return []string{backslash + "+"}
	case '\t':
		return []string{backslash + "+t", " "}
	case ' ', '\u00a0':
		return []string{`\+`, " ", named("nbsp")}
	}
	if unicode.IsSpace(r) || unicode.IsControl(r) {
		return []string{" "}
	}
	return nil
}
