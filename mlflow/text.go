package mlflow

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMessage is the length of Error.Message in characters.
const maxMessage = 300

// clean makes a text of unknown origin fit for an error: one line of at most maxMessage characters, without control
// characters and secrets.
func (c *Client) clean(text string) string {
	return shorten(hideUserInfo(hideWord(c.scrub(oneLine(text)), c.config.Username)), maxMessage)
}

// scrub replaces passwords and tokens. An HTML page is scrubbed also before its tags are cut, because a < in a password
// would begin one.
func (c *Client) scrub(text string) string {
	if c.secrets == nil {
		return text
	}
	return c.secrets.ReplaceAllLiteralString(text, "***")
}

// hideWord hides a user name, which may be an ordinary word: "test" is replaced where it stands alone, not in "latest",
// which nobody could read any more.
func hideWord(text, word string) string {
	if word == "" {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[min(i+len(word), len(text)):])
		if strings.HasPrefix(text[i:], word) && !isWordRune(before) && !isWordRune(after) {
			b.WriteString("***")
			i += len(word)
			continue
		}
		_, n := utf8.DecodeRuneInString(text[i:])
		b.WriteString(text[i : i+n])
		i += n
	}
	return b.String()
}

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r))
}

// hideUserInfo replaces what stands between :// and @ in the URLs of a text.
func hideUserInfo(text string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, "://")
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i+3])
		text = text[i+3:]
		end := strings.IndexAny(text, " \t\"'<>")
		if end < 0 {
			end = len(text)
		}
		if at := strings.LastIndexByte(text[:end], '@'); at >= 0 {
			b.WriteString("***")
			text = text[at:]
		}
	}
}

// oneLine replaces control characters and runs of white space by single spaces, and drops what is no UTF-8 or turns
// the direction of writing.
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

// plain is the text of an answer that is no JSON: of an HTML page its title, or else its first words.
func (c *Client) plain(body []byte) string {
	return textOf(c.scrub(string(body)))
}

// textOf is plain of a page that has been scrubbed.
func textOf(body string) string {
	if !strings.HasPrefix(strings.TrimSpace(body), "<") {
		return body
	}
	lower := asciiLower(body) // as long as body
	if i := strings.Index(lower, "<title"); i >= 0 {
		if j := strings.Index(lower[i:], "</title"); j >= 0 {
			if title := strings.TrimSpace(untag(body[i : i+j])); title != "" {
				return title
			}
		}
	}
	for _, element := range []string{"script", "style", "head"} {
		body = cutElement(body, element)
	}
	return untag(body)
}

// cutElement drops an HTML element with all that is in it.
func cutElement(body, name string) string {
	for {
		lower := asciiLower(body)
		i := strings.Index(lower, "<"+name)
		if i < 0 {
			return body
		}
		j := strings.Index(lower[i:], "</"+name)
		if j < 0 {
			return body[:i]
		}
		body = body[:i] + " " + body[i+j+2+len(name):]
		if k := strings.IndexByte(body[i:], '>'); k >= 0 {
			body = body[:i+1] + body[i+k+1:]
		}
	}
}

// untag replaces tags by spaces and the usual entities by their characters.
func untag(html string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(html, '<')
		if i < 0 {
			b.WriteString(html)
			break
		}
		b.WriteString(html[:i] + " ")
		j := strings.IndexByte(html[i:], '>')
		if j < 0 {
			break
		}
		html = html[i+j+1:]
	}
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#39;", "'", "&#x27;", "'", "&#34;", `"`,
		"&nbsp;", " ", "&amp;", "&").Replace(b.String())
}

// asciiLower is strings.ToLower for ASCII letters alone, so that indices stay the same.
func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
