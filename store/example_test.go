package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/perfagent/perfagent/store"
)

// A reference is a short string that is cheap to pass on. Resolve fetches the object.
func ExampleRef() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx, address := context.Background(), "proxystore+file://"+filepath.ToSlash(dir)
	s, err := store.Open(address, store.Options{CacheSize: store.DefaultCacheSize, Metrics: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	ref, err := s.Proxy(ctx, "job-7/node-0", []byte(`{"a":1}`), store.RefOptions{Evict: true})
	fmt.Println(strings.TrimPrefix(ref.String(), address), err)
	for range 2 { // the object is fetched once and then deleted
		data, err := ref.Resolve(ctx)
		fmt.Println(string(data), err)
	}

	_, err = s.ProxyFromKey(ref.Name(), store.RefOptions{}).Resolve(ctx)
	var missing *store.MissingKeyError
	fmt.Println(errors.As(err, &missing), missing.Key)
	m := s.Metrics()
	fmt.Println(m.Times["store.put"].Count, m.Times["factory.call"].Count, m.Counters["store.get.cache_misses"])
	// Output:
	// #job-7/node-0 <nil>
	// {"a":1} <nil>
	// {"a":1} <nil>
	// true perfagent.job-7.node-0.json
	// 1 2 2
}
