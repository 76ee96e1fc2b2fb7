package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/perfagent/perfagent/internal/procfile"
)

// readNet reads /proc/net/dev. gopsutil creates a string for every field (BenchmarkSources), and panics on a short line
// or a file without its two header lines. In another host's procfs, net is a link to self/net, which shows the reader's
// namespace. So readNet first tries net/dev of the host's process 1.
func (r *Reader) readNet(_ time.Duration, into []Device) ([]Device, error) {
	if r.gopsutil != nil {
		return r.gopsutil.readNet()
	}

	parse := func(data []byte) ([]Device, error) { return parseNetDev(data, &r.nicNames, into) }
	if r.hostProc {
		nics, err := readParsed(&r.scratch, r.paths.hostNet, parse)
		if !errors.Is(err, fs.ErrNotExist) {
			return nics, err
		}
	}
	return readParsed(&r.scratch, r.paths.net, parse)
}

// parseNetDev appends every interface to nics. The name is the text before the last colon, because the name of an alias
// contains a colon. Of the 16 counters, the first is the bytes received and the ninth is the bytes sent. The two header
// lines have no colon.
func parseNetDev(data []byte, names *nameCache, nics []Device) ([]Device, error) {
	if nics == nil {
		nics = make([]Device, 0, max(1, len(*names)))
	}
	for number := 0; len(data) > 0; number++ {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte{'\n'})
		colon := bytes.LastIndexByte(line, ':')
		name := bytes.TrimSpace(line[:max(colon, 0)])
		if colon < 0 && (number < 2 || len(bytes.TrimSpace(line)) == 0) {
			continue
		}
		if len(name) == 0 {
			return nil, fmt.Errorf("line %q has no name", line)
		}
		var f [16][]byte
		if n := procfile.SplitFields(line[colon+1:], f[:]); n < len(f) {
			return nil, fmt.Errorf("line %q has %d counters", line, n)
		}
		in, okIn := procfile.ParseCount(f[0])
		out, okOut := procfile.ParseCount(f[8])
		if !okIn || !okOut {
			return nil, fmt.Errorf("%s: %q received, %q sent", name, f[0], f[8])
		}
		nics = append(nics, Device{Name: names.at(len(nics), name), In: in, Out: out})
	}

	if len(nics) == 0 {
		return nil, errors.New("no interface")
	}
	return nics, nil
}
