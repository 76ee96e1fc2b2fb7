package store

// ReadAnswer is readAnswer for tests.
var ReadAnswer = readAnswer

// ParseListing is parseListing for tests.
var ParseListing = parseListing

// ParseProfile is parseProfile for tests: the id, the secret and the token of a profile.
func ParseProfile(data []byte, profile string) (id, secret, token string, found bool) {
	k, found := parseProfile(data, profile)
	return k.id, k.secret, k.token, found
}
