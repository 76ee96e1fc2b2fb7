package mlflowtest

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// maxIdle limits how many unused servers a Pool keeps running. Each server takes half a gigabyte of memory.
const maxIdle = 2

// A Pool shares servers among the tests of a package, because starting a server takes seconds. The zero Pool is ready
// for use. TestMain closes it:
//
//	var servers mlflowtest.Pool
//
//	func TestMain(m *testing.M) {
//		code := m.Run()
//		servers.Close()
//		os.Exit(code)
//	}
//
// Tests that share a server must not stop it, and must use separate experiments.
type Pool struct {
	mu      sync.Mutex
	entries map[string]*entry
	clock   int
}

// An entry is a server of a Pool.
type entry struct {
	mu      sync.Mutex // held while the server starts
	server  *Server
	running bool
	failed  bool
	users   int // number of tests that use the server; guarded by the Pool
	used    int // value of Pool.clock at the last take; guarded by the Pool
}

// Get returns a running server for use until the end of the test. It skips the test in the same cases as Start.
func (p *Pool) Get(tb testing.TB, o Options) *Server {
	tb.Helper()
	if o.Version == 0 {
		o.Version = 3
	}
	python(tb, o.Version) // skips the test if MLflow is missing

	e := p.take(tb, fmt.Sprintf("%+v", o))
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed {
		tb.Fatal("this server failed to start in another test")
	}
	if !e.running {
		p.makeRoom(e)
		e.failed = true // until it has started
		if e.server == nil {
			e.server = newServer(tb, o, p.dir(tb))
		}
		e.server.start(tb)
		e.failed, e.running = false, true
	}
	tb.Cleanup(func() { e.server.logTail(tb) })
	return e.server
}

// take returns the entry of key and marks it as used until the test ends.
func (p *Pool) take(tb testing.TB, key string) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries == nil {
		p.entries = map[string]*entry{}
	}
	e := p.entries[key]
	if e == nil {
		e = new(entry)
		p.entries[key] = e
	}
	p.clock++
	e.used = p.clock
	e.users++

	tb.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		e.users--
	})
	return e
}

// makeRoom stops servers that no test uses, the least recently used first, until there is room for wanted. The stores
// of the stopped servers are kept for the next use.
func (p *Pool) makeRoom(wanted *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		running := 0
		var oldest *entry
		for _, e := range p.entries {
			if e == wanted || e.users > 0 { // in use, or starting
				running += min(e.users, 1)
				continue
			}
			if !e.running {
				continue
			}
			running++
			if oldest == nil || e.used < oldest.used {
				oldest = e
			}
		}

		if oldest == nil || running-1 < maxIdle { // running includes wanted
			return
		}

		oldest.server.close()
		oldest.running = false
	}
}

// dir creates a directory that outlives the test.
func (p *Pool) dir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "mlflowtest")
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

// Close stops all servers and removes their stores.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.entries {
		if e.server != nil {
			e.server.close()
			_ = os.RemoveAll(e.server.Dir)
		}
	}
	p.entries = nil
}
