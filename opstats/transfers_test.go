package opstats

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perfagent/perfagent/internal/check"
)

// transfersOf returns Transfers with the given lists.
func transfersOf(t testing.TB, duration, post, bytes, descriptor []float64) *Transfers {
	t.Helper()
	data := jsonOf(t, map[string][]float64{
		TransferDuration: duration, PostDuration: post, BytesTransferred: bytes, NumDescriptors: descriptor,
	})
	var read Transfers
	check.Must(t, json.Unmarshal([]byte(data), &read))

	return &read
}

// wantSum checks the length and the sum of a list.
func wantSum(t *testing.T, a *Transfers, list string, n int64, sum float64) {
	t.Helper()
	if gotN, got := a.Sum(list); gotN != n || got != sum {
		t.Errorf("%s: %d entries with sum %v, want %d with sum %v", list, gotN, got, n, sum)
	}
}

// scaled returns the numbers from 1 to n, each multiplied by factor.
func scaled(n int, factor float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = float64(i+1) * factor
	}

	return list
}

const mib = 1 << 20

func TestTransfers_ReduceEqualsVLLM(t *testing.T) {
	micros := func(us ...float64) []float64 {
		for i := range us {
			us[i] /= 1e6
		}
		return us
	}
	type list = []float64
	ones := list{1, 1, 1, 2, 2, 2}
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		duration, post, bytes, descriptor list
		want                              TransferSummary
	}{
		{list{}, list{}, list{}, list{}, TransferSummary{}},
		{micros(9862), micros(5693), list{70 * mib}, list{56}, TransferSummary{1, 9.862, 9.862, 5.693, 5.693, 70, 7097.952, 56}},
		{ones, ones, ones, ones, TransferSummary{6, 1500, 2000, 1500, 2000, 0, 0, 1.5}},
		{list{1, 2}, list{0.1, 0.2}, list{1024, 2048}, list{10, 20}, TransferSummary{2, 1500, 1900, 150, 190, 0.001, 0.001, 15}},
		{scaled(10, 1e-3), scaled(10, 1e-4), scaled(10, mib), scaled(10, 1),
			TransferSummary{10, 5.5, 9.1, 0.55, 0.91, 5.5, 1000, 5.5}},
		{list{1, 1, 1, 1}, list{1, 1, 1, 1}, list{0, 0, 0, 0}, list{1, 1, 1, 2},
			TransferSummary{4, 1000, 1000, 1000, 1000, 0, 0, 1.2}},
		{list{0}, list{0}, list{mib}, list{1}, TransferSummary{1, 0, 0, 0, 0, 1, inf, 1}},
		{list{0}, list{0}, list{0}, list{1}, TransferSummary{1, 0, 0, 0, 0, 0, nan, 1}},
		{micros(2, 3), micros(2, 3), list{0, 0}, list{1, 1}, TransferSummary{2, 0.002, 0.003, 0.002, 0.003, 0, 0, 1}},
	} {
		got := transfersOf(t, c.duration, c.post, c.bytes, c.descriptor).Reduce()
		if fmt.Sprint(got) != fmt.Sprint(c.want) { // compared as text, so that NaN equals NaN
			t.Errorf("Reduce with durations %v:\ngot  %v\nwant %v", c.duration, got, c.want)
		}
	}
}

func TestTransferSummary_JSONRoundTrips(t *testing.T) {
	for want, r := range map[string]TransferSummary{
		`{"Num successful transfers":0,"Avg xfer time (ms)":0,"P90 xfer time (ms)":0,"Avg post time (ms)":0,` +
			`"P90 post time (ms)":0,"Avg MB per transfer":0,"Throughput (MB/s)":0,"Avg number of descriptors":0}`: {},
		`{"Num successful transfers":1,"Avg xfer time (ms)":9.862,"P90 xfer time (ms)":9.862,"Avg post time (ms)":5.693,` +
			`"P90 post time (ms)":5.693,"Avg MB per transfer":70,"Throughput (MB/s)":null,"Avg number of descriptors":56}`: {
			1, 9.862, 9.862, 5.693, 5.693, 70, math.Inf(1), 56,
		},
	} {
		same(t, jsonOf(t, r), want)
		reread(t, &r, &TransferSummary{})
	}
}

// numpy and Python round numbers differently that are half-way between two thousandths.
func TestNumpyRoundAndPythonRound_DifferAtHalves(t *testing.T) {
	for v, want := range map[float64][2]float64{ // numpy, Python
		0.0005: {0, 0.001}, 0.0025: {0.002, 0.003}, 0.0015: {0.002, 0.002}, 2.5: {2.5, 2.5}, 1e22: {1e22, 1e22},
		0.0625: {0.062, 0.062}, 0.1875: {0.188, 0.188}, math.Inf(1): {math.Inf(1), math.Inf(1)},
	} {
		if n, p := numpyRound(v, 1000), pythonRound(v); n != want[0] || p != want[1] {
			t.Errorf("numpyRound and pythonRound of %v = %v and %v, want %v", v, n, p, want)
		}
	}
}

func TestTransfers_RecordAppendsToLists(t *testing.T) {
	var a Transfers
	if !a.Empty() || a.Len() != 0 {
		t.Errorf("new Transfers: Empty() = %v, Len() = %d; want true, 0", a.Empty(), a.Len())
	}
	check.Must(t, a.Record(Transfer{XferMicros: 9862, PostMicros: 5693, Bytes: 70 * mib, Descriptors: 56}))
	same(t, jsonOf(t, &a), `{"transfer_duration":[0.009862],"post_duration":[0.005693],"bytes_transferred":[73400320],`+
		`"num_descriptors":[56],"num_failed_transfers":[],"num_failed_notifications":[],"num_kv_expired_reqs":[]}`)
	if a.Empty() || a.Len() != 1 {
		t.Errorf("after one Record: Empty() = %v, Len() = %d; want false, 1", a.Empty(), a.Len())
	}
	reread(t, &a, &Transfers{})
}

// An interval that has only failures is not empty.
func TestTransfers_WithOnlyFailuresIsNotEmpty(t *testing.T) {
	for list, record := range map[string]func(*Transfers){
		NumFailedTransfers:     (*Transfers).RecordFailedTransfer,
		NumFailedNotifications: (*Transfers).RecordFailedNotification,
		NumKVExpiredReqs:       (*Transfers).RecordKVExpired,
	} {
		var a, all Transfers
		record(&a)
		record(&a)
		check.Must(t, all.Aggregate(&a))
		check.Must(t, all.Aggregate(&Transfers{}))
		if n, sum := all.Sum(list); all.Empty() || all.Len() != 0 || n != 2 || sum != 2 {
			t.Errorf("%s recorded twice: sum %v of %d entries, %s; want sum 2 of 2 entries, not empty, no transfers", list, sum, n, jsonOf(t, &all))
		}
		if got := jsonOf(t, &all); !strings.Contains(got, `"`+list+`":[1,1]`) || strings.Count(got, "[]") != 6 {
			t.Errorf("%s recorded twice: JSON = %s, want only that list with entries, [1,1]", list, got)
		}
		same(t, all.Reduce(), TransferSummary{})
	}
}

func TestTransfers_RecordRefusesInvalidTransfers(t *testing.T) {
	var a Transfers
	check.Must(t, a.Record(Transfer{XferMicros: 1}))
	before := jsonOf(t, &a)
	nan, inf := math.NaN(), math.Inf(1)
	far := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		x    Transfer
		want error
	}{
		{Transfer{XferMicros: -1}, ErrNotFinite}, {Transfer{XferMicros: nan}, ErrNotFinite},
		{Transfer{PostMicros: inf}, ErrNotFinite}, {Transfer{Bytes: 1e101}, ErrNotFinite},
		{Transfer{Descriptors: nan}, ErrNotFinite}, {Transfer{Descriptors: -1}, ErrNotFinite},
		{Transfer{Descriptors: 1 << 32}, ErrMalformed}, {Transfer{End: far}, ErrMalformed},
		{Transfer{End: time.Unix(-1, 0)}, ErrMalformed}, {Transfer{End: time.Unix(math.MaxInt64, 0)}, ErrMalformed},
	} {
		if err := a.Record(c.x); !errors.Is(err, c.want) {
			t.Errorf("Record(%+v): error %v, want %v", c.x, err, c.want)
		}
	}
	if after := jsonOf(t, &a); after != before {
		t.Errorf("refused transfers changed the lists from %s to %s", before, after)
	}
	check.Must(t, a.Record(Transfer{Descriptors: MaxDescriptors, End: far.Add(-1)}))
}

// Neither the result of CloneAndReset nor the result of Clone changes afterwards.
func TestTransfers_CloneAndResetReturnsIndependentContents(t *testing.T) {
	var a Transfers
	record := func(us float64) { check.Must(t, a.Record(Transfer{XferMicros: us, End: unix(us)})) }
	record(1)
	record(2)
	a.RecordKVExpired()
	full := jsonOf(t, &a)

	kept := a.Clone()
	record(3)
	handed := a.CloneAndReset()
	handedJSON := jsonOf(t, handed)
	if !a.Empty() || jsonOf(t, &a) != jsonOf(t, &Transfers{}) {
		t.Errorf("Transfers after CloneAndReset = %s, want empty lists", jsonOf(t, &a))
	}
	for range 100 {
		record(9)
		check.Must(t, kept.Record(Transfer{XferMicros: 8, End: unix(8)}))
	}
	if got := jsonOf(t, handed); got != handedJSON || handed.Len() != 3 {
		t.Errorf("the result of CloneAndReset changed to %s (%d transfers), want %s (3)", got, handed.Len(), handedJSON)
	}

	var b Transfers
	full = strings.Replace(full, `"num_kv_expired_reqs"`, `"new":[1],"num_kv_expired_reqs"`, 1)
	check.Must(t, json.Unmarshal([]byte(full), &b))
	before, c := jsonOf(t, &b), b.Clone()
	check.Must(t, b.Aggregate(handed))
	check.Must(t, b.Aggregate(c))
	same(t, jsonOf(t, c), before)
	b.Condense()
	d := b.Clone()
	check.Must(t, b.Record(Transfer{XferMicros: 5}))
	if d.Len() != 7 || b.Len() != 8 {
		t.Errorf("the clone has %d transfers and the original %d, want 7 and 8", d.Len(), b.Len())
	}
}

// Three workers send their data as JSON once per second, and the scheduler aggregates it. The result equals one list of
// all transfers.
func TestTransfers_AggregatedRanksEqualOneList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var ranks [3]Transfers
	var all, one Transfers
	for range 20 {
		for rank := range ranks {
			for range rng.IntN(10) {
				x := Transfer{
					XferMicros: math.Round(math.Exp(rng.NormFloat64() + 9)), PostMicros: float64(rng.IntN(9000)),
					Bytes: float64(rng.IntN(1 << 30)), Descriptors: float64(1 + rng.IntN(500)),
				}
				check.Must(t, ranks[rank].Record(x))
				check.Must(t, one.Record(x))
			}
			if rng.IntN(5) == 0 {
				ranks[rank].RecordFailedTransfer()
				one.RecordFailedTransfer()
			}
		}
		for rank := range ranks { // in the order of the records above
			var received Transfers
			check.Must(t, json.Unmarshal([]byte(jsonOf(t, ranks[rank].CloneAndReset())), &received))
			check.Must(t, all.Aggregate(&received))
		}
	}
	same(t, jsonOf(t, &all), jsonOf(t, &one))
	same(t, all.Reduce(), one.Reduce())
	if all.Len() < 200 {
		t.Errorf("Len() = %d, want at least 200", all.Len())
	}
}

// Versions of vLLM have different lists. vLLM's class would raise a KeyError for a list that is missing on one side.
func TestTransfers_KeepsListsOfOtherVersions(t *testing.T) {
	var newer, all Transfers
	check.Must(t, json.Unmarshal([]byte(`{"num_failed_handshakes":[1,1,0.5],"remote_tokens":[]}`), &newer))
	if newer.Empty() {
		t.Error("Empty() = true with failures in a list of a newer version, want false")
	}
	check.Must(t, all.Aggregate(&newer))
	check.Must(t, all.Aggregate(&newer))
	same(t, all.UnknownLists(), []string{"num_failed_handshakes", "remote_tokens"})
	wantSum(t, &all, "num_failed_handshakes", 6, 5)
	wantSum(t, &all, "unheard_of", 0, 0)
	same(t, jsonOf(t, &newer), `{"transfer_duration":[],"post_duration":[],"bytes_transferred":[],"num_descriptors":[],`+
		`"num_failed_transfers":[],"num_failed_notifications":[],"num_kv_expired_reqs":[],`+
		`"num_failed_handshakes":[1,1,0.5],"remote_tokens":[]}`)
	reread(t, &all, &Transfers{})
	all.Condense()
	same(t, all.UnknownLists(), []string{"num_failed_handshakes", "remote_tokens"})
	wantSum(t, &all, "num_failed_handshakes", 6, 5)
	reread(t, &all, &Transfers{})
}

// Unknown lists are kept up to a limit. Known lists are kept even if they arrive with too many unknown lists.
func TestTransfers_LimitsUnknownLists(t *testing.T) {
	for _, condense := range []bool{false, true} {
		var all Transfers
		for i := range maxUnknownLists + 3 {
			var x Transfers
			check.Must(t, json.Unmarshal(fmt.Appendf(nil, `{"num_failed_transfers":[1],"new_%02d":[1]}`, i), &x))
			if err := all.Aggregate(&x); (i < maxUnknownLists) != (err == nil) || err != nil && !errors.Is(err, ErrFull) {
				t.Errorf("Aggregate with unknown list %d: error %v, want %v only from list %d on", i, err, ErrFull, maxUnknownLists)
			}
			if condense {
				all.Condense()
			}
		}
		if n, _ := all.Sum(NumFailedTransfers); n != maxUnknownLists+3 || len(all.UnknownLists()) != maxUnknownLists {
			t.Errorf("got %d failed transfers, %d unknown lists; want %d, %d", n, len(all.UnknownLists()), maxUnknownLists+3,
				maxUnknownLists)
		}
		reread(t, &all, &Transfers{})
	}
}

func TestTransfers_SpanNeedsEveryEnd(t *testing.T) {
	var a Transfers
	end := unix(1795357692.08)
	check.Must(t, a.Record(Transfer{XferMicros: 9862, Bytes: 70 * mib, End: end}))
	r := a.Reduce()
	if rate, ok := a.WallThroughput(); !ok || math.Abs(rate-r.Throughput) > 0.001 {
		t.Errorf("WallThroughput of one transfer = %v, %v; want %v, true", rate, ok, r.Throughput)
	}

	// For four concurrent transfers, the throughput of vLLM's class is about a quarter of the wall throughput.
	var b Transfers
	for i := range 4 {
		check.Must(t, b.Record(Transfer{XferMicros: 1e6, Bytes: mib, End: end.Add(time.Duration(i) * time.Millisecond)}))
	}
	first, last, ok := b.Span()
	if !ok || !first.Equal(end.Add(-time.Second)) || !last.Equal(end.Add(3*time.Millisecond)) {
		t.Errorf("Span = %v to %v, %v; want from 1 s before %v to 3 ms after it", first, last, ok, end)
	}
	if rate, _ := b.WallThroughput(); math.Abs(rate-4/1.003) > 1e-9 || b.Reduce().Throughput != 1 {
		t.Errorf("wall throughput = %v, throughput = %v; want %v, 1", rate, b.Reduce().Throughput, 4/1.003)
	}

	// The span is kept by operations that keep the ends of all transfers, and is unknown once a transfer has no end.
	back := reread(t, &b, &Transfers{})
	check.Must(t, back.Aggregate(&a))
	back.Condense()
	back = reread(t, back.CloneAndReset(), &Transfers{})
	if first, last, ok = back.Span(); !ok || last.Sub(first) != time.Second+3*time.Millisecond || back.Len() != 5 {
		t.Errorf("after condensing and rereading: Span = %v to %v, %v, %d transfers; want a span of 1.003 s, 5 transfers", first, last, ok,
			back.Len())
	}
	check.Must(t, back.Aggregate(transfersOf(t, []float64{1}, []float64{1}, []float64{1}, []float64{1})))
	_, _, span := back.Span()
	if _, rate := back.WallThroughput(); span || rate {
		t.Errorf("with a transfer without an end: Span known = %v, WallThroughput known = %v; want false, false", span, rate)
	}
}

func TestTransfers_HaveNoSpanWithoutTransfers(t *testing.T) {
	var a Transfers
	if _, _, ok := a.Span(); ok {
		t.Error("Span without transfers returned true, want false")
	}
	check.Must(t, a.Record(Transfer{End: unix(5)})) // the transfer took no time
	if rate, ok := a.WallThroughput(); ok {
		t.Errorf("WallThroughput of a transfer without duration = %v, true; want false", rate)
	}
	check.Must(t, a.Record(Transfer{XferMicros: 1e99, End: unix(5)})) // longer than an int64 of nanoseconds
	if first, _, ok := a.Span(); !ok || first.Year() != 1940 {
		t.Errorf("Span of a huge duration begins at %v, %v; want a time in 1940, true", first, ok)
	}
	reread(t, &a, &Transfers{})
}

// After Condense, the sums are exact, and the P90 values are within 1 % of the nearest-rank value.
func TestTransfers_CondenseKeepsSumsAndEstimatesP90(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	var exact, early, late Transfers
	if early.Condense(); !early.Empty() {
		t.Error("empty Transfers are not empty after Condense")
	}
	for range 50000 {
		x := Transfer{
			XferMicros: math.Round(math.Exp(rng.NormFloat64() + 9)), PostMicros: rng.Float64() * 1000,
			Bytes: float64(rng.IntN(1 << 30)), Descriptors: 9 * rng.Float64(), End: unix(rng.Float64()),
		}
		for _, a := range []*Transfers{&exact, &early, &late} {
			check.Must(t, a.Record(x))
		}
	}
	if late.Condense(); late.Uncondensed() != 0 || early.Uncondensed() != 0 || exact.Uncondensed() != 50000 {
		t.Errorf("Uncondensed(): late %d, early %d, exact %d; want 0, 0, 50000", late.Uncondensed(), early.Uncondensed(),
			exact.Uncondensed())
	}
	late.RecordFailedTransfer()
	early.RecordFailedTransfer()
	exact.RecordFailedTransfer()
	same(t, jsonOf(t, &early), jsonOf(t, &late))

	want, got := exact.Reduce(), late.Reduce()
	for _, p := range []struct {
		got, want *float64
		list      []float64
	}{{&got.P90Xfer, &want.P90Xfer, exact.lists[TransferDuration].values}, {&got.P90Post, &want.P90Post, exact.lists[PostDuration].values}} {
		if rank := nearestRank(slices.Sorted(slices.Values(p.list)), 900) * 1000; math.Abs(*p.got-rank) > 0.01*rank+0.0005 {
			t.Errorf("P90 = %v, want %v within 1 %%", *p.got, rank)
		}
		*p.got = *p.want
	}
	same(t, got, want)
	same(t, late.Estimated(), []string{"P90 xfer time (ms)", "P90 post time (ms)"})
	if exact.Estimated() != nil {
		t.Errorf("Estimated() = %q while lists are kept, want none", exact.Estimated())
	}
	reread(t, &late, &Transfers{})
}

// Naive addition would get this sum wrong.
func TestTransfers_CondensedSumsAreExact(t *testing.T) {
	var a Transfers
	a.Condense()
	check.Must(t, a.Record(Transfer{XferMicros: 1e22}))
	for range 100000 {
		check.Must(t, a.Record(Transfer{XferMicros: 1e6}))
	}
	if _, sum := a.Sum(TransferDuration); sum != 1e16+100000 {
		t.Errorf("condensed sum = %v, want the exact sum %v", sum, 1e16+100000)
	}
	// The length and the sum of the list are preserved.
	wantSum(t, reread(t, &a, &Transfers{}), TransferDuration, 100001, 1e16+100000)
}

// The result of Aggregate is the same whether either side is condensed or not.
func TestTransfers_AggregateIsSameIfCondensed(t *testing.T) {
	part := func(condense bool) *Transfers {
		var a Transfers
		check.Must(t, json.Unmarshal([]byte(`{"new":[2]}`), &a))
		check.Must(t, a.Record(Transfer{XferMicros: 1000, Bytes: mib, Descriptors: 1, End: unix(5)}))
		a.RecordFailedNotification()
		if condense {
			a.Condense()
		}
		return &a
	}
	for _, c := range [][2]bool{{true, false}, {false, true}, {true, true}} {
		a, b := part(c[0]), part(c[1])
		before := jsonOf(t, b)
		check.Must(t, a.Aggregate(b))
		check.Must(t, a.Aggregate(&Transfers{}))
		check.Must(t, a.Aggregate(a))
		same(t, a.Reduce(), TransferSummary{4, 1, a.Reduce().P90Xfer, 0, 0, 1, 1000, 1})
		for list, want := range map[string]float64{"new": 8, NumFailedNotifications: 4, NumFailedTransfers: 0} {
			if _, sum := a.Sum(list); sum != want {
				t.Errorf("condensed %v: sum of %s = %v, want %v", c, list, sum, want)
			}
		}
		if _, _, ok := a.Span(); !ok || jsonOf(t, b) != before {
			t.Errorf("condensed %v: Span known = %v, argument %s; want true, unchanged %s", c, ok, jsonOf(t, b), before)
		}
	}
}

// The lists take no more memory than the documentation of MaxUncondensed promises.
func TestTransfers_FitTheirMemoryBudget(t *testing.T) {
	const n = MaxUncondensed
	for condense, most := range map[bool]int64{false: 4*mib + 50000, true: 10000} {
		bytes := heapOf(t, func() any {
			var a Transfers
			if condense {
				a.Condense()
			}
			for i := range n {
				check.Must(t, a.Record(Transfer{XferMicros: float64(i), Bytes: 1, Descriptors: 1}))
			}
			return &a
		})
		t.Logf("%d transfers, condensed %v: %.2f MiB", n, condense, float64(bytes)/mib)
		if bytes > most {
			t.Errorf("size of %d transfers, condensed %v = %d bytes, want at most %d", n, condense, bytes, most)
		}
	}
}
