package mlflow

import (
	"encoding/base64"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMessage is the maximum length of Error.Message in characters.
const maxMessage = 300

// minSecret is the minimum length, in bytes, of a password or token that is hidden. Hiding shorter secrets would make
// all texts unreadable.
const minSecret = 4

// hidden is the replacement for secrets in texts.
const hidden = "***"

// A redactor hides credentials in texts of unknown origin. A server or a proxy may send back parts of a request.
type redactor struct {
	secrets []secret // password, token and Basic credentials, the longest first
	opaque  bool     // one of the secrets cannot be recognized in an escaped form

	user     *regexp.Regexp // the user name as a whole word; nil if there is none
	userInfo *regexp.Regexp
	escape   *regexp.Regexp
}

// A secret is a text that must not be shown. raw is the text itself, and plain is the result of unescape, or "" if that
// is too short to be searched for.
type secret struct{ raw, plain string }

// newRedactor returns a redactor for the credentials in cfg. The expressions are compiled here, not at the start of the
// program, because most programs never need them.
func newRedactor(cfg Config) *redactor {
	const hex = "[0-9a-fA-F]"
	r := &redactor{
		userInfo: regexp.MustCompile(`://[^\s"'<>]*@`),
		escape: regexp.MustCompile(`%(?:25)*` + hex + `{2}` +
			`|\\+(?:x` + hex + `{2}|u` + hex + `{4}|U` + hex + `{8}|u\{` + hex + `{1,8}\}|[abfnrtv])?` +
			`|&(?:amp;)*(?:#[0-9]+|#[xX]` + hex + `+|[a-zA-Z][a-zA-Z0-9]*);`),
	}
	if user := oneLine(cfg.Username); user != "" {
		r.user = regexp.MustCompile(`(^|[^\pL\pN])` + regexp.QuoteMeta(user) + `([^\pL\pN]|$)`)
	}

	secrets := []string{cfg.Password, cfg.Token}
	if cfg.usesBasicAuth() {
		secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte(cfg.Username+":"+cfg.Password)))
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, s := range secrets {
		if len(s) < minSecret {
			break
		}
		plain := r.unescape(s)
		if len(plain) < minSecret {
			plain, r.opaque = "", true
		}
		r.secrets = append(r.secrets, secret{raw: s, plain: plain})
	}
	return r
}

// hide replaces passwords and tokens in text. If text contains one of them in an escaped form, all escapes in text are
// undone.
func (r *redactor) hide(text string) string {
	if r.opaque && strings.ContainsAny(text, `%&\+`) {
		return hidden
	}
	for _, s := range r.secrets {
		text = strings.ReplaceAll(text, s.raw, hidden)
		if s.plain == "" {
			continue
		}
		if plain := r.unescape(text); strings.Contains(plain, s.plain) {
			text = strings.ReplaceAll(plain, s.plain, hidden)
		}
	}
	return text
}

// clean makes text safe for an error: one line of at most maxMessage characters, without control characters and
// credentials.
func (r *redactor) clean(text string) string {
	text = r.hide(oneLine(text))
	if r.user != nil {
		// A user name may be an ordinary word, so "test" is not hidden in "latest". If two user names are separated by
		// only one character, the first pass hides only one of them.
		for range 2 {
			text = r.user.ReplaceAllString(text, "${1}"+hidden+"${2}")
		}
	}
	return shorten(r.userInfo.ReplaceAllLiteralString(text, "://"+hidden+"@"), maxMessage)
}

// unescape undoes the escapes of URLs, HTML, JSON, Python and Go, even nested ones, so that an escaped text can be
// compared with a secret. It drops the characters that these languages escape in different ways: backslashes,
// characters that Python writes as one byte or JSON as two numbers, and bytes that are not UTF-8.
func (r *redactor) unescape(text string) string {
	for range 4 {
		next := r.escape.ReplaceAllStringFunc(text, unescapeOne)
		if next == text {
			break
		}
		text = next
	}

	text = oneLine(strings.ReplaceAll(text, "+", " "))
	return strings.Map(func(c rune) rune {
		if c >= 0x80 && c <= 0xff || c > 0xffff {
			return -1
		}
		return c
	}, text)
}

// unescapeOne returns the text that a single escape represents.
func unescapeOne(escape string) string {
	if escape[0] == '&' {
		entity := strings.TrimSuffix(escape, ";")
		entity = entity[strings.LastIndexAny(entity, "&;")+1:]
		return html.UnescapeString("&" + entity + ";")
	}

	digits := strings.TrimLeft(escape, `\`)
	switch {
	case digits == "":
		return ""
	case digits[0] == '%' || digits[0] == 'x':
		n, _ := strconv.ParseUint(digits[len(digits)-2:], 16, 8)
		return string([]byte{byte(n)})
	case digits[0] == 'u' || digits[0] == 'U':
		n, _ := strconv.ParseUint(strings.Trim(digits, "uU{}"), 16, 32)
		return string(rune(n))
	}
	return " " // \n and similar
}

// oneLine replaces control characters and runs of white space with single spaces. It drops bytes that are not UTF-8,
// and invisible characters such as the ones that change the writing direction.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r) || unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// shorten shortens text to at most n characters.
func shorten(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// quote quotes at most 100 characters of name.
func quote(name string) string { return strconv.Quote(shorten(name, 100)) }

// pageText returns the text of page, a response that is not JSON. For HTML, that is the title or, if there is none, the
// whole text.
func pageText(page string) string {
	if !strings.HasPrefix(strings.TrimSpace(page), "<") {
		return page
	}

	markup := regexp.MustCompile(`(?is)<(?:script|style|head)\b.*?(?:</(?:script|style|head)[^>]*>|\z)|<[^>]*(?:>|\z)`)
	title := regexp.MustCompile(`(?is)<title.*?</title`).FindString(page)
	for _, part := range []string{title, page} {
		if text := strings.TrimSpace(html.UnescapeString(markup.ReplaceAllLiteralString(part, " "))); text != "" {
			return text
		}
	}
	return ""
}
