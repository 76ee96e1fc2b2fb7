package process

// readIO adds up what the job's processes, and the children that they waited for, read from storage
// and wrote to it.
func (t *Tree) readIO(begin instant) {
	read, written := t.ended.read, t.ended.written
	var unread failure
	known := 0
	for _, p := range t.ours {
		if p.ioAt > 0 && p.ioAt == p.clock { // it has not run since
			known++
			read += float64(p.read)
			written += float64(p.written)
			continue
		}
		data, err := t.dir.read(p.pid, "io")
		if gone(err) && !t.dir.exists(p.pid) {
			continue
		}
		var r, w uint64
		if err == nil {
			r, w, err = parseIO(data)
		}
		if err != nil {
			t.note(&unread, p.pid, "io", err)
			continue
		}
		known++
		p.read, p.written, p.ioAt = r, w, p.clock
		read += float64(r)
		written += float64(w)
	}

	t.fail("io", unread.why("storage bytes", len(t.ours)))
	t.use.ReadBytes, t.use.WriteBytes, t.use.IOFresh = read, written, true
	t.ioKnown = t.ioKnown || known > 0
	if known == 0 && (unread.n > 0 || !t.ioKnown && t.o.Root == 0) { // nobody else knows what the ended ones had
		nan := nothing()
		t.use.ReadBytes, t.use.WriteBytes, t.use.IOFresh = nan.ReadBytes, nan.WriteBytes, false
	}
	end := t.clock()
	t.due.io = min(after(begin, end, ioPart), end.wall+maxBeat)
}
