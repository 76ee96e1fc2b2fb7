package book

import "time"

// AddSource adds a source of a kind (statsd, dogstatsd, unix or scrape) and returns its number.
func (b *Book) AddSource(kind, address string) int {
	s := Source{Kind: kind, Address: address}
	if kind == "scrape" {
		s.Scrapes = new(int64)
	} else {
		s.Datagrams = new(int64)
	}
	b.Sources = append(b.Sources, s)

	return len(b.Sources) - 1
}

// Received counts datagrams of a source and the events that were taken from them.
func (b *Book) Received(source int, datagrams, events int64, at time.Time) {
	s := &b.Sources[source]
	s.Datagrams = new(*s.Datagrams + datagrams) // copies of the Source share what it was
	b.changes++
	s.seen(events, at)
}

// Scraped counts a scrape of a source, and the events that were taken from it or why it failed.
func (b *Book) Scraped(source int, events int64, why string, at time.Time) {
	s := &b.Sources[source]
	s.Scrapes = new(*s.Scrapes + 1)
	b.changes++
	if why != "" {
		b.Fail(source, why)
		return
	}
	s.seen(events, at)
}

// Fail counts a failure of a source, and says why.
func (b *Book) Fail(source int, why string) {
	b.changes++
	b.Sources[source].Failures++
	b.Sources[source].Why = why
}

// seen counts events.
func (s *Source) seen(events int64, at time.Time) {
	s.Events += events
	if events == 0 {
		return
	}
	if s.First == 0 {
		s.First = unixSeconds(at)
	}
	s.Last = unixSeconds(at)
}
