package process

// readIO sets the I/O in t.use, and the time of its next measurement. /proc/PID/io includes the children that the
// process waited for.
func (t *Tree) readIO(begin clockReading) {
	sum := t.ended.io
	var unread failure
	known := 0
	for _, p := range t.jobProcs {
		if p.ioAt > 0 && p.ioAt == p.clock { // the process has not run since
			known++
			sum = sum.Plus(p.io)
			continue
		}
		data, err := t.dir.read(p.pid, "io")
		if isGone(err) && !t.dir.exists(p.pid) {
			continue
		}
		var io IO
		if err == nil {
			io, err = parseIO(data)
		}
		if err != nil {
			t.note(&unread, p.pid, "io", err)
			continue
		}
		known++
		p.io, p.ioAt = io, p.clock
		sum = sum.Plus(io)
	}

	t.fail("io", unread.why("storage bytes and calls", len(t.jobProcs)))
	t.use.IO, t.use.IOFresh = sum, true
	t.ioKnown = t.ioKnown || known > 0
	if known == 0 && (unread.n > 0 || !t.ioKnown && t.o.Root == 0) { // nothing is known, not even of ended processes
		t.use.IO, t.use.IOFresh = UnknownIO(), false
	}
	end := t.clock()
	t.due.io = min(nextDue(begin, end, ioPart), end.mono+maxInterval)
}
