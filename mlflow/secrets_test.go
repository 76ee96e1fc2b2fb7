package mlflow

import (
	"encoding/json"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

func TestSecrets_Escaped(t *testing.T) {
	t.Parallel()
	const password = `pä"ss<w>&\x'`
	encoded, err := json.Marshal(password)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := json.Marshal(string(encoded))
	if err != nil {
		t.Fatal(err)
	}
	entities := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;").Replace(password)
	for name, form := range map[string]string{
		"plain": password, "JSON": string(encoded), "JSON in JSON": string(twice),
		"JSON without HTML": `pä\"ss<w>&\\x'`, "JSON of Python": `p\u00e4\"ss<w>&\\x'`, "upper case": `p\u00E4\"ss\u003Cw\u003E\u0026\\x'`,
		"repr": `pä"ss<w>&\\x\'`, "ascii": `p\xe4"ss<w>&\\x\'`, "bytes": `p\xc3\xa4"ss<w>&\\x\'`, "repr in JSON": `p\\xe4\"ss<w>&\\\\x\\'`,
		"Go": strconv.Quote(password), "Go in ASCII": strconv.QuoteToASCII(password),
		"query": url.QueryEscape(password), "path": url.PathEscape(password), "lower case": strings.ToLower(url.QueryEscape(password)),
		"query, twice": url.QueryEscape(url.QueryEscape(password)),
		"HTML":         html.EscapeString(password), "HTML of Python": entities, "HTML, twice": html.EscapeString(entities),
		"HTML of JSON": html.EscapeString(`p\u00e4\"ss<w>&\\x'`), "query of JSON": url.QueryEscape(string(encoded)), "decimal": `p&#228;&#34;ss&#060;w&#62;&#38;&#92;x&#039;`,
	} {
		for _, body := range []string{`{"detail":[{"input":"` + form + `"}]}`, `{"message":"` + form + `"}`, "<p>" + form, "text: " + form} {
			c := answering(t, 422, body)
			c.secrets, err = secretsOf(Config{Username: "u", Password: password})
			if err != nil {
				t.Fatal(err)
			}
			e := wantText(t, getRun(c))
			for _, part := range []string{"ss", "pä", "00e4", "00E4", "xe4", "C3", "c3", "w>", "w&"} {
				if strings.Contains(strings.ReplaceAll(e.Message, "message", ""), part) {
					t.Errorf("%s: %s shows %q", name, e.Message, part)
				}
			}
		}
	}
}

func TestSecretsOf(t *testing.T) {
	t.Parallel()
	for secret, text := range map[string]string{
		"a b  c\td": `a b  c\td`, "x/y+z==": `x\/y%2bz%3D%3d`, "emoji😀!": `emoji\ud83d\ude00!`, "em\\oji😀": `em\\oji\U0001F600`,
		"bad\xffbytes": `bad\xffbytes`, "a.b.c": "a.b.c", "sp ace": "sp+ace", "line\nend": "line end",
	} {
		re, err := secretsOf(Config{Token: secret})
		if err != nil {
			t.Fatal(err)
		}
		if got := re.ReplaceAllLiteralString(" "+text+".", "***"); got != " ***." {
			t.Errorf("%q in %q: %q", secret, text, got)
		}
	}
	re, err := secretsOf(Config{Password: "hunter2", Token: "hunter2-and-more"})
	if err != nil || re.ReplaceAllLiteralString("hunter2-and-more hunter2 a.b", "***") != "*** *** a.b" {
		t.Error("the longer one is not hidden as a whole", err)
	}
	if re, err := secretsOf(Config{Password: "abc"}); re != nil || err != nil {
		t.Error(re, err)
	}
	if _, err := secretsOf(Config{Token: strings.Repeat("x/", 1<<10)}); err != nil {
		t.Error(err)
	}
}
