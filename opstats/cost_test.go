package opstats

import (
	"math"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
)

// Adding values to known entries does not allocate.
func TestAdd_DoesNotAllocate(t *testing.T) {
	now, l := time.Now(), filled(t)
	var s Sketch
	var condensed Transfers
	condensed.Condense()
	values := [...]float64{0.02, 0.5, 0.7, 1, 40}
	add := func() {
		for _, v := range values {
			check.Must(t, l.AddTime("store.get", "k1", v, now))
			check.Must(t, l.AddCounter("hits", "k1", v))
			check.Must(t, s.Add(v))
			check.Must(t, condensed.Record(Transfer{XferMicros: v, PostMicros: v, Bytes: v, Descriptors: v, End: now}))
			_ = l.AddTime("store.get", "k1", -v, now) // rejected
			_ = l.AddTime("store.get", "k9", -v, now) // rejected
			_ = condensed.Record(Transfer{Bytes: -v}) // rejected
			condensed.RecordFailedTransfer()
		}
	}
	add() // the first value of each size allocates its bins

	// AllocsPerRun rounds the average per run down, so measure a single run of many additions. Take the minimum of
	// several tries, because a garbage collection may allocate, too.
	fewest := math.Inf(1)
	for try := 0; try < 5 && fewest > 0; try++ {
		fewest = min(fewest, testing.AllocsPerRun(1, func() {
			for range 1000 {
				add()
			}
		}))
	}
	if fewest != 0 {
		t.Errorf("adding to known entries made %v allocations, want 0", fewest)
	}
}

func BenchmarkLedgerAddTime(b *testing.B) {
	l, now := filled(b), time.Now()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = l.AddTime("store.get", "k1", float64(i&1023), now)
	}
}

func BenchmarkSketchAdd(b *testing.B) {
	var s Sketch
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = s.Add(float64(i&1023) * 0.37)
	}
}

func BenchmarkTransfersRecord(b *testing.B) {
	for name, condense := range map[string]bool{"lists": false, "condensed": true} {
		b.Run(name, func(b *testing.B) {
			now := time.Now()
			var a Transfers
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if condense {
					a.Condense()
				} else if a.Uncondensed() == MaxUncondensed {
					a = Transfers{}
				}
				_ = a.Record(Transfer{XferMicros: float64(i & 1023), PostMicros: 7, Bytes: mib, Descriptors: 9, End: now})
			}
		})
	}
}

// BenchmarkTransfersReadData reads the data of one interval, which a job sends in one datagram.
func BenchmarkTransfersReadData(b *testing.B) {
	var a Transfers
	for i := range 1000 {
		_ = a.Record(Transfer{XferMicros: float64(9000 + i), PostMicros: 7.5, Bytes: mib, Descriptors: 9})
	}
	data := []byte(jsonOf(b, &a))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var read Transfers
		_ = read.UnmarshalJSON(data)
	}
}
