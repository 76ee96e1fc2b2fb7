package store

import (
	"bufio"
	"errors"
)

// ReadAnswer is readResponse for tests, with the memory limit of the response.
func ReadAnswer(in *bufio.Reader, most int64) (any, error) {
	a := responseReader{in: in, left: most}
	return a.read(0)
}

// DecodeProxyStore decodes an object of a ProxyStore, for tests.
func DecodeProxyStore(stored []byte) ([]byte, error) { return proxyStoreCodec{}.decode(stored) }

// ParseListing is parseListing for tests.
var ParseListing = parseListing

// ParseProfile is parseProfile for tests. It returns the ID, the secret and the token of a profile.
func ParseProfile(data []byte, profile string) (id, secret, token string, found bool) {
	k, found := parseProfile(data, profile)
	return k.ID, k.Secret, k.Token, found
}

// New returns a store that keeps objects unchanged in connector.
func New(connector Connector, o Options) (*Store, error) { return newStore(connector, plainCodec{}, o) }

// OpenRef opens the store of a reference, STORE#NAME, and returns it with a Ref. No error repeats the reference.
func OpenRef(reference string, o Options, ro RefOptions) (*Store, *Ref, error) {
	address, name, ok := SplitReference(reference)
	if !ok {
		return nil, nil, errors.New("open reference: it is not of the form STORE#NAME")
	}
	s, err := Open(address, o)
	if err != nil {
		return nil, nil, err
	}
	return s, s.ProxyFromKey(name, ro), nil
}
