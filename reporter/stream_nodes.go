package reporter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/perfagent/perfagent/internal/text"
)

const (
	// nodesAhead is how many nodes may wait for the caller.
	nodesAhead = 2
	// sharedSize is the size of a node's JSON up to which others are read meanwhile.
	sharedSize = 16 << 20
)

// coming is a node on its way from the file to the caller.
type coming struct {
	name    string
	at      int64  // its place in the file
	data    []byte // its JSON
	node    *Node
	err     error
	decoded chan struct{} // closed once node or err is there
	used    chan struct{} // closed once the caller has had it
}

// stream hands the nodes, which come next, to the caller.
func (s *scan) stream(node nodeFunc) error {
	var workers sync.WaitGroup
	queue, stop := make(chan *coming, nodesAhead), make(chan struct{})
	var failed error // known when the queue is closed
	workers.Go(func() {
		defer close(queue)
		failed = s.eachNode(func(c *coming) bool { return s.hand(c, queue, stop, &workers) })
	})
	defer workers.Wait()
	defer close(stop)
	for c := range queue {
		<-c.decoded
		if c.err != nil {
			return c.err
		}
		if err := node(&s.report.Run, c.name, c.node); err != nil {
			return err
		}
		close(c.used)
	}
	return failed
}

// hand puts a node into the queue and has it decoded. The next one is read meanwhile,
// unless they are large. It is false when no more are wanted.
func (s *scan) hand(c *coming, queue chan<- *coming, stop <-chan struct{}, workers *sync.WaitGroup) bool {
	shared := len(c.data) <= sharedSize
	if shared { // the decoder will use its buffer again
		c.data = bytes.Clone(c.data)
	}
	select {
	case queue <- c:
	case <-stop:
		return false
	}
	workers.Go(func() { c.decode(s.wanted) })
	if shared {
		return true
	}
	select {
	case <-c.used:
		return true
	case <-stop:
		return false
	}
}

// eachNode reads the nodes until hand is false. Their data are the decoder's.
func (s *scan) eachNode(hand func(*coming) bool) error {
	switch kind := s.decoder.PeekKind(); kind {
	case 'n':
		return errNoNodes
	case '{', 0:
	default:
		return &placed{s.decoder.InputOffset(), errors.New("nodes are not an object")}
	}
	if _, err := s.decoder.ReadToken(); err != nil {
		return err
	}
	names := make(map[string]bool)
	for {
		name, ok, err := s.next()
		switch {
		case err != nil:
			return err
		case !ok && len(names) == 0:
			return errNoNodes
		case !ok:
			return nil
		}
		if err := checkName(name, names); err != nil {
			return &placed{s.decoder.InputOffset(), err}
		}
		names[name] = true
		data, at, err := s.value()
		if err != nil {
			return err
		}
		if !hand(&coming{name: name, at: at, data: data, decoded: make(chan struct{}), used: make(chan struct{})}) {
			return nil
		}
	}
}

// checkName refuses what cannot be the name of a node that comes after others.
func checkName(name string, before map[string]bool) error {
	i, err := strconv.ParseUint(name, 10, 31)
	switch {
	case err != nil || strconv.FormatUint(i, 10) != name:
		return fmt.Errorf("has a node %q, which is no node index", text.Printable(text.Clip(name, 40)))
	case before[name]:
		return fmt.Errorf("node %s stands there twice", name)
	case len(before) == maxNodes:
		return fmt.Errorf("has more than %d nodes", maxNodes)
	}
	return nil
}

// decode makes the node of its JSON.
func (c *coming) decode(wanted Wanted) {
	defer close(c.decoded)
	n, at, err := decodeNode(c.data, wanted)
	c.data = nil
	if err != nil {
		c.err = &placed{c.at + at, fmt.Errorf("node %s: %w", c.name, err)}
		return
	}
	c.node = n
}

// decodeNode makes a node of its JSON, which is known to be JSON. at is the place of
// an error.
func decodeNode(data []byte, wanted Wanted) (n *Node, at int64, err error) {
	c := cursor{data: data}
	switch {
	case c.peek() == 'n':
		return nil, 0, errors.New("null is not a node")
	case !c.enter('{'):
		return nil, 0, errors.New("not an object")
	}
	n = &Node{}
	rows := 0
	for c.more('}') {
		at := c.at
		switch key := unquote(c.key()); {
		case strings.EqualFold(key, "samples"):
			rows, err = n.Samples.read(&c, wanted)
		case strings.EqualFold(key, "envelope"):
			err = n.Envelope.read(&c, wanted)
		default:
			c.skip()
			member := slices.Concat([]byte{'{'}, data[at:c.at], []byte{'}'})
			if err := json.Unmarshal(member, n); err != nil {
				return nil, int64(at) + offset(err), err
			}
		}
		if err != nil {
			return nil, int64(c.at), err
		}
	}
	if n.Missing == nil { // left out by somebody else's program
		n.Missing = []Missing{}
	}
	return n, 0, n.checkSeries(rows)
}
