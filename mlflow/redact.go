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

// minSecret is the length in bytes below which a password or token is not looked for, because
// hiding it would make all texts unreadable.
const minSecret = 4

// alphanumeric are the letters and digits of ASCII.
const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// hidden replaces secrets in texts.
const hidden = "***"

// A redactor hides credentials in texts of unknown origin. A server may send back what it was sent,
// and so may a proxy, in one of many encodings.
type redactor struct {
	secrets []string // password, token and Basic credentials, the longest first, as they are and as oneLine leaves them

	user     *regexp.Regexp // the user name as a word of its own; nil if there is none
	userInfo *regexp.Regexp
}

// newRedactor returns a redactor for the credentials of a config. The expressions are compiled
// here, not when the program starts, because most programs never need them.
func newRedactor(cfg Config) *redactor {
	r := &redactor{userInfo: regexp.MustCompile(`://[^\s"'<>]*@`)}
	if user := oneLine(cfg.Username); user != "" {
		r.user = regexp.MustCompile(`(^|[^\pL\pN])` + regexp.QuoteMeta(user) + `([^\pL\pN]|$)`)
	}

	secrets := []string{cfg.Password, cfg.Token}
	if cfg.basic() {
		secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte(cfg.Username+":"+cfg.Password)))
	}
	for _, s := range secrets {
		for _, form := range []string{s, oneLine(s)} {
			if len(form) >= minSecret {
				r.secrets = append(r.secrets, form)
			}
		}
	}
	slices.SortFunc(r.secrets, func(a, b string) int { return len(b) - len(a) })
	return r
}

// hide replaces passwords and tokens in a text. A text that may have one in an escaped form is withheld: it has
// escapes, and the longest run of letters and digits of the secret, which no encoding escapes.
func (r *redactor) hide(text string) string {
	for _, s := range r.secrets {
		text = strings.ReplaceAll(text, s, hidden)
		longest := ""
		for _, run := range strings.FieldsFunc(s, func(c rune) bool { return !strings.ContainsRune(alphanumeric, c) }) {
			if len(run) > len(longest) {
				longest = run
			}
		}
		if longest != s && strings.ContainsAny(text, `%&\+`) && strings.Contains(text, longest) {
			return hidden
		}
	}
	return text
}

// clean makes a text fit for an error: one line of at most maxMessage characters without control
// characters and credentials.
func (r *redactor) clean(text string) string {
	text = r.hide(oneLine(text))
	if r.user != nil {
		// A user name may be an ordinary word: "test" is not hidden in "latest". Of two that share
		// the character between them the first pass hides only one.
		for range 2 {
			text = r.user.ReplaceAllString(text, "${1}"+hidden+"${2}")
		}
	}
	return shorten(r.userInfo.ReplaceAllLiteralString(text, "://"+hidden+"@"), maxMessage)
}

// oneLine replaces control characters and runs of white space by single spaces. It drops what is
// not UTF-8 or changes the direction of writing.
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

// shorten cuts a text to at most n characters.
func shorten(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// quote quotes a name of unknown length and contents.
func quote(name string) string { return strconv.Quote(shorten(name, 100)) }

// pageText returns the text of an answer that is not JSON. Of an HTML page that is its title or, if
// it has none, its words.
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
