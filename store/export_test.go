package store

import "bufio"

// ReadAnswer is readAnswer for tests, with the bytes that the answer may take.
func ReadAnswer(in *bufio.Reader, most int64) (any, error) {
	a := answer{in: in, left: most}
	return a.read(0)
}

// DecodeProxyStore is what a ProxyStore's objects are decoded with, for tests.
func DecodeProxyStore(stored []byte) ([]byte, error) { return tagging{}.decode(stored) }

// ParseListing is parseListing for tests.
var ParseListing = parseListing

// ParseProfile is parseProfile for tests: the id, the secret and the token of a profile.
func ParseProfile(data []byte, profile string) (id, secret, token string, found bool) {
	k, found := parseProfile(data, profile)
	return k.ID, k.Secret, k.Token, found
}
