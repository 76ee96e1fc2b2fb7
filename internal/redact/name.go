package redact

import (
	"slices"
	"strings"
	"unicode"
)

// Words that mark a variable or option name as secret.
var (
	secretWords = []string{
		"password", "passwd", "passphrase", "token", "secret", "credential", "credentials", "authorization", "apikey",
	}
	secretKeys = []string{"api", "access", "private"} // these mark a name if "key" follows

	// A word that ends with one of these is secret, too: PGPASSWORD.
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

// words splits name at non-letters and at capitals, and returns the words in lower case: "apiKey", "API_KEY" and
// "APIKey" all give "api" and "key".
func words(name string) []string {
	var out []string
	letters := []rune(name)
	begin := 0
	for i := 0; i <= len(letters); i++ {
		switch {
		case i == len(letters) || !unicode.IsLetter(letters[i]):
			out = appendWord(out, letters[begin:i])
			begin = i + 1
		case i > begin && isHump(letters, i):
			out = appendWord(out, letters[begin:i])
			begin = i
		}
	}

	return out
}

func appendWord(words []string, letters []rune) []string {
	if len(letters) == 0 {
		return words
	}
	return append(words, strings.ToLower(string(letters)))
}

// isHump reports whether a word begins at letters[i]: it is a capital after or before a lower-case letter.
func isHump(letters []rune, i int) bool {
	if !unicode.IsUpper(letters[i]) {
		return false
	}
	return !unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])
}

// isNameByte reports whether b may be part of a name or of the dashes before a name.
func isNameByte(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b >= 0x80 ||
		b == '_' || b == '-' || b == '.' || b == '['
}

// isSecretOption reports whether arg is an option with a secret as its value, which is the next argument.
func isSecretOption(arg string) bool {
	return strings.HasPrefix(arg, "-") && !strings.ContainsFunc(arg, func(r rune) bool {
		return r < 0x80 && !isNameByte(byte(r))
	}) && isSecretName(arg)
}

// isLongOption reports whether arg is an option rather than the value of the previous option.
func isLongOption(arg string) bool {
	return arg == "--" || len(arg) > 2 && strings.HasPrefix(arg, "--") && unicode.IsLetter(rune(arg[2]))
}
