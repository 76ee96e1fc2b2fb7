package store

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// IsAddress reports whether s has the form of a store's address: it begins with '/' or '.', or is a URL.
func IsAddress(s string) bool {
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, ".") || strings.Contains(s, "://")
}

// SplitReference splits STORE#NAME at its last '#'. ok is false if s has another form.
func SplitReference(s string) (address, name string, ok bool) {
	at := strings.LastIndexByte(s, '#')
	if at < 0 || at == len(s)-1 || !IsAddress(s[:at]) {
		return "", "", false
	}
	return s[:at], s[at+1:], true
}

// newConnector returns the connector for address and the codec of the objects there. credentials is
// Options.Credentials. It reads only its arguments and, for S3, the environment. No error repeats the address, because
// it may contain a password.
func newConnector(address, credentials string) (Connector, codec, error) {
	if strings.HasPrefix(address, "/") || strings.HasPrefix(address, ".") {
		return directory{layout: outLayout, dir: filepath.Clean(address)}, plainCodec{}, nil
	}
	u, err := url.Parse(address)
	if err != nil || !strings.Contains(address, "://") {
		return nil, nil, errors.New("open store: the address is neither a path that begins with / or . nor a URL")
	}

	switch u.Scheme {
	case "file":
		return directory{layout: outLayout, dir: filepath.Clean(u.Path)}, plainCodec{}, checkFileURL(u)
	case "proxystore+file":
		tag, err := serializerOf(u)
		d := directory{proxyLayout, filepath.Clean(u.Path), true, u.Query()}
		return d, tag, cmp.Or(checkFileURL(u, "serializer"), err)
	case "s3":
		s, err := newS3(u)
		return s, plainCodec{}, err
	case "redis", "rediss":
		r, err := newRedis(u, credentials, "prefix", "ttl")
		return r, gzipCodec{}, err
	case "proxystore+redis":
		r, err := newRedis(u, credentials, "ttl", "serializer")
		tag, errTag := serializerOf(u)
		return r, tag, cmp.Or(err, errTag)
	}
	return nil, nil, errors.New("open store: the address has an unknown scheme; known are file, redis, rediss, s3, " +
		"proxystore+file and proxystore+redis")
}

// serializerOf returns the codec of the objects in the ProxyStore at u.
func serializerOf(u *url.URL) (proxyStoreCodec, error) {
	tag := tagText
	if u.Query().Has("serializer") {
		tag = u.Query().Get("serializer")
	}
	if tag != tagText && tag != tagTextOld {
		return proxyStoreCodec{}, fmt.Errorf("open store: serializer is %s or %s", tagText, tagTextOld)
	}
	return proxyStoreCodec{tag}, nil
}

// checkFileURL returns an error if u is not the URL of a directory, or contains an option that is not in options.
func checkFileURL(u *url.URL, options ...string) error {
	if u.Host != "" && u.Host != "localhost" || u.User != nil || !strings.HasPrefix(u.Path, "/") {
		return fmt.Errorf("open store: the address of a directory is %s:///DIR, with three slashes", u.Scheme)
	}
	_, err := optionsOf(u, options...)
	return err
}

// optionsOf returns the options of u. An option that occurs twice in u or is not in options is an error.
func optionsOf(u *url.URL, options ...string) (url.Values, error) {
	if u.Fragment != "" {
		return nil, errors.New("open store: the address has a #NAME, which is for objects only")
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("open store: the options after the ? of the address must have the form NAME=VALUE")
	}

	for name, list := range values {
		switch {
		case !slices.Contains(options, name):
			return nil, fmt.Errorf("open store: the address has an unknown option; known are: %s",
				cmp.Or(strings.Join(options, ", "), "none"))
		case len(list) > 1:
			return nil, fmt.Errorf("open store: the address has the option %s twice", name)
		}
	}
	return values, nil
}
