package collector

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/perfagent/perfagent/collector/host"
)

// dice turns fuzzing bytes into choices. When the bytes are used up, all choices are 0.
type dice struct{ data []byte }

func (d *dice) byte() byte {
	if len(d.data) == 0 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return b
}

// count returns any 64-bit number, often one near the end of a counter's range.
func (d *dice) count() uint64 {
	n := uint64(d.byte())
	switch d.byte() % 6 {
	case 0:
		return n
	case 1:
		return math.MaxUint32 - n
	case 2:
		return math.MaxUint64 - n
	case 3:
		return n << 24
	case 4:
		return n << 56
	}

	var b [8]byte
	for i := range b {
		b[i] = d.byte()
	}
	return binary.LittleEndian.Uint64(b[:])
}

func (d *dice) devices() []host.Device {
	n := int(d.byte() % 6)
	if n == 5 {
		return nil
	}
	devs := make([]host.Device, n)
	for i := range devs {
		devs[i] = host.Device{Name: string('a' + rune(d.byte()%4)), In: d.count(), Out: d.count(), Class: host.DeviceClass(d.byte() % 8)}
	}
	return devs
}

func (d *dice) cpus() []host.CPUTimes {
	n := int(d.byte() % 5)
	var cpus []host.CPUTimes
	for range n {
		c := ticks(string('0' + rune(d.byte()%4)))
		for m := range c.Seconds {
			c.Seconds[m] = float64(d.count()) / 100
		}
		c.Guest, c.GuestNice = float64(d.count())/100, float64(d.count())/100
		cpus = append(cpus, c)
	}
	return cpus
}

// FuzzProgress processes any sequence of Readings: no value may be negative, huge or out of range, and no counter may
// fall.
func FuzzProgress(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x02\x00\x10\x20\x30\x02\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d"))
	w := newWorld(1, false)
	seed := make([]byte, 600)
	for i := range seed {
		seed[i] = byte(w.rng.Uint32())
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &dice{data}
		now := at(0)
		read := func() *host.Reading {
			r := &host.Reading{At: now, CPU: d.cpus(), Devices: [host.NumDeviceKinds][]host.Device{host.Disks: d.devices(), host.NICs: d.devices()}}
			if d.byte()%4 > 0 {
				r.Memory = &host.Memory{Total: d.count() | 1, Available: d.count()}
			}
			if d.byte()%4 > 0 {
				r.Disk = []host.DiskUsage{{Path: "/", Used: d.count() | 1, Available: d.count()}}
			}
			return r
		}
		p, before := NewCounterState(read()), nothingBefore()
		for n := 0; len(d.data) > 0 && n < 100; n++ {
			step := time.Duration(d.byte()) * 10 * time.Millisecond
			now.Mono, now.Boot = now.Mono+step, now.Boot+step+time.Duration(d.byte()%3)*time.Hour
			now.Wall = now.Wall.Add(time.Duration(int8(d.byte())) * time.Hour)
			var s Sample
			spent := p.CPUSeconds()
			p, s = p.Next(read(), time.Duration(d.byte()%8)*10*time.Millisecond)
			if err := checkSample(&s, before); err != nil {
				t.Fatalf("reading %d: %v", n, err)
			}
			for m, v := range p.CPUSeconds() { // at most four CPUs; NaN at first
				if v < spent[m] || v > 5*(now.Boot-at(0).Boot).Seconds()+float64(n+1)*5*cpuSlack || math.IsNaN(v) && !math.IsNaN(spent[m]) {
					t.Fatalf("reading %d: %v s of %v after %v s; want no decrease, and at most what the CPUs can provide", n, v,
						host.CPUMode(m), spent[m])
				}
			}
			for _, c := range deviceCounters {
				if most := float64(n+1) * 8 * (1 << 50) / MiB; s.Values[c.total] > most || s.Values[c.rate] > most*100 {
					t.Fatalf("reading %d: %s = %v, rate %v; want at most %v and %v", n, c.total.Key(), s.Values[c.total],
						s.Values[c.rate], most, most*100)
				}
			}
		}
	})
}
