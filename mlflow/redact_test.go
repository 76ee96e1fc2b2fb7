package mlflow

import (
	"encoding/json"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perfagent/perfagent/internal/check"
)

func TestError_HidesEscapedSecrets(t *testing.T) {
	t.Parallel()
	const password = `pä"ss<w>&\x'`
	encoded := check.Value(json.Marshal(password))(t)
	twice := check.Value(json.Marshal(string(encoded)))(t)
	entities := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;").Replace(password)
	for name, form := range map[string]string{
		"plain": password, "JSON": string(encoded), "JSON in JSON": string(twice),
		"JSON without HTML": `pä\"ss<w>&\\x'`,
		"JSON from Python":  `p\u00e4\"ss<w>&\\x'`,
		"upper case":        `p\u00E4\"ss\u003Cw\u003E\u0026\\x'`,
		"repr":              `pä"ss<w>&\\x\'`,
		"ascii":             `p\xe4"ss<w>&\\x\'`,
		"bytes":             `p\xc3\xa4"ss<w>&\\x\'`,
		"repr in JSON":      `p\\xe4\"ss<w>&\\\\x\\'`,
		"Go":                strconv.Quote(password), "Go in ASCII": strconv.QuoteToASCII(password),
		"query":            url.QueryEscape(password),
		"path":             url.PathEscape(password),
		"lower case":       strings.ToLower(url.QueryEscape(password)),
		"query, twice":     url.QueryEscape(url.QueryEscape(password)),
		"HTML":             html.EscapeString(password),
		"HTML from Python": entities,
		"HTML, twice":      html.EscapeString(entities),
		"HTML of JSON":     html.EscapeString(`p\u00e4\"ss<w>&\\x'`),
		"query of JSON":    url.QueryEscape(string(encoded)),
		"decimal":          `p&#228;&#34;ss&#060;w&#62;&#38;&#92;x&#039;`,
	} {
		for _, body := range []string{`{"detail":[{"input":"` + form + `"}]}`, `{"message":"` + form + `"}`,
			"<p>" + form, "text: " + form} {
			c := answering(t, 422, body)
			c.redactor = newRedactor(Config{Username: "u", Password: password})
			e := wantText(t, getRun(c))
			for _, part := range []string{"ss", "pä", "00e4", "00E4", "xe4", "C3", "c3", "w>", "w&"} {
				if strings.Contains(strings.ReplaceAll(e.Message, "message", ""), part) {
					t.Errorf("%s: the message %s contains %q", name, e.Message, part)
				}
			}
		}
	}
}

func TestRedactor_FindsEscapedSecrets(t *testing.T) {
	t.Parallel()
	for secret, texts := range map[string][]string{
		"a b  c\td":            {`a b  c\td`, "a b c d"},
		"x/y+z==":              {`x\/y%2bz%3D%3d`, `x&sol;y&plus;z&equals;&equals;`},
		"emoji😀!":              {`emoji\ud83d\ude00!`, `emoji%F0%9F%98%80%21`, `emoji\u{1f600}!`},
		"em\\oji😀":             {`em\\oji\U0001F600`},
		"bad\xffbytes":         {`bad\xffbytes`, "bad\xffbytes", `bad\ufffdbytes`, "bad%FFbytes"},
		"a.b.c":                {"a.b.c"},
		"sp ace":               {"sp+ace"},
		"line\nend":            {"line end", `line\nend`, `line\\nend`},
		"100%!":                {"100%2525%21"},
		"qu%41z":               {"qu%41z", "qu%2541z"},
		"&lt;xyz":              {"&amp;lt;xyz", "%26lt%3Bxyz"},
		`\u0041\` + "`" + `bc`: {`\\u0041\\\u0060bc`},
		"пароль-1":             {`\u043f\u0430\u0440\u043e\u043b\u044c-1`, "%D0%BF%D0%B0%D1%80%D0%BE%D0%BB%D1%8C-1"},
		"pässwörd":             {`p\xe4ssw\xf6rd`, `p\xc3\xa4ssw\xc3\xb6rd`, "p&auml;ssw&ouml;rd"},
		`"<&>'`:                {"%22%3C%26%3E%27"},
	} {
		r := newRedactor(Config{Token: secret})
		for _, text := range texts {
			if got := r.clean("say " + text + "."); got != "say ***." {
				t.Errorf("secret %q: %q becomes %q, want \"say ***.\"", secret, text, got)
			}
		}
	}
}

func TestRedactor_HidesTheLongestSecret(t *testing.T) {
	t.Parallel()
	r := newRedactor(Config{Password: "hunter2", Token: "hunter2-and-more"})
	if got := r.clean("hunter2-and-more hunter2 a.b"); got != "*** *** a.b" {
		t.Errorf("clean of plain secrets: %s, want *** *** a.b", got)
	}
	if got := r.clean("hunter2%2Dand-more hunter2 a%2eb"); got != "*** *** a.b" {
		t.Errorf("clean of escaped secrets: %s, want *** *** a.b", got)
	}
}

// A text without a secret is unchanged.
func TestRedactor_LeavesTextsWithoutSecrets(t *testing.T) {
	t.Parallel()
	r := newRedactor(Config{Username: "test", Password: "hunter2"})
	for text, want := range map[string]string{
		`Run 'a%20b' \u00e4 <x> &amp; + not found`: `Run 'a%20b' \u00e4 <x> &amp; + not found`,
		"the latest test: test test, testé tests":  "the latest ***: *** ***, testé tests",
		"hunter":                                "hunter",
		"at http://a:b@h/c@d ftp://x@y, e@mail": "at http://***@d ftp://***@y, e@mail",
	} {
		if got := r.clean(text); got != want {
			t.Errorf("clean(%q) = %q, want %q", text, got, want)
		}
	}
	if got := newRedactor(Config{Password: "abc"}).clean("abcd%61bc"); got != "abcd%61bc" {
		t.Errorf("clean with a password of 3 bytes = %q, want it unchanged", got)
	}
}

// Credentials may contain any bytes.
func TestRedactor_AcceptsAnyCredentials(t *testing.T) {
	t.Parallel()
	for _, odd := range []string{"\xff\xfe", "a\xff(", "*", "***", "[", "\x00\x00\x00\x00", strings.Repeat("x(", 1<<12)} {
		r := newRedactor(Config{Username: odd, Password: odd, Token: odd})
		if got := r.clean("plain words"); got != "plain words" {
			t.Errorf("credentials %.20q: clean(\"plain words\") = %q, want it unchanged", odd, got)
		}
		if got := r.clean("it is " + odd + " here"); len(odd) >= minSecret && strings.Contains(got, odd) {
			t.Errorf("credentials %.20q: the result %.100q still contains them", odd, got)
		}
	}
}

// If unescaping leaves little of a secret, no escaped text is shown.
func TestRedactor_WithholdsTextsItCannotCheck(t *testing.T) {
	t.Parallel()
	r := newRedactor(Config{Password: "äöü😀"})
	for text, want := range map[string]string{
		"the connection was refused":       "the connection was refused",
		"it says äöü😀":                     "it says ***",
		`it says \u00e4\u00f6\u00fc\ud83d`: "***",
		"it says %C3%A4%C3%B6":             "***",
		"it says &auml;&ouml;":             "***",
	} {
		if got := r.clean(text); got != want {
			t.Errorf("clean(%q) = %q, want %q", text, got, want)
		}
	}
}

// FuzzRedactor escapes a secret up to three times, as servers do, and looks for it.
func FuzzRedactor(f *testing.F) {
	f.Add("pä\"ss<w>&\\x'", "see ", uint16(0x123))
	f.Add("a+b/c==%41", "a%b\\", uint16(0x4321))
	f.Fuzz(func(t *testing.T, secret, before string, ways uint16) {
		if len(secret) < minSecret || strings.ContainsAny(secret, "*") || !utf8.ValidString(secret) {
			return // some escapes replace invalid UTF-8, so that the secret is unrecognizable
		}
		r := newRedactor(Config{Token: secret})
		text := secret
		for range 3 {
			switch ways & 7 {
			case 1:
				text = url.QueryEscape(text)
			case 2:
				text = url.PathEscape(text)
			case 3:
				text = html.EscapeString(text)
			case 4:
				encoded, _ := json.Marshal(text)
				text = string(encoded)
			case 5:
				text = strconv.QuoteToASCII(text)
			}
			ways >>= 3
		}
		got := r.clean(before + " " + text + " after")
		if plain := r.unescape(secret); strings.Contains(got, secret) || strings.Contains(got, text) ||
			len(plain) >= minSecret && strings.Contains(r.unescape(got), plain) {
			t.Errorf("clean result %q still has the secret %q, as %q", got, secret, text)
		}
	})
}
