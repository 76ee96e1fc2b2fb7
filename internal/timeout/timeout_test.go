package timeout

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// outcome is the result of a call, with the time that the call took.
type outcome struct {
	value int
	ok    bool
	took  time.Duration
}

func measure(call func() (int, bool)) outcome {
	begin := time.Now()
	value, ok := call()
	return outcome{value, ok, time.Since(begin)}
}

// after returns a function that returns result after d.
func after(d time.Duration, result int) func() int {
	return func() int {
		time.Sleep(d)
		return result
	}
}

func TestCall_GivesUpAfterLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			takes, limit time.Duration
			want         outcome
		}{
			{0, time.Hour, outcome{7, true, 0}},
			{time.Second, time.Hour, outcome{7, true, time.Second}},
			{time.Hour, time.Second, outcome{0, false, time.Second}},
		} {
			got := measure(func() (int, bool) { return Call(c.limit, after(c.takes, 7)) })
			if got != c.want {
				t.Errorf("limit %v, result after %v: %+v, want %+v", c.limit, c.takes, got, c.want)
			}
		}
		time.Sleep(2 * time.Hour) // let the last call return, although its result is never taken
	})
}

func TestReceive_ReturnsAvailableValueImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready, closed, empty := make(chan int, 1), make(chan int), make(chan int)
		ready <- 7
		close(closed)
		for _, c := range []struct {
			what string
			from chan int
			want outcome
		}{
			{"a value", ready, outcome{7, true, 0}},
			{"an end", closed, outcome{0, true, 0}},
			{"nothing", empty, outcome{0, false, 0}},
		} {
			if got := measure(func() (int, bool) { return Receive(c.from, 0) }); got != c.want {
				t.Errorf("Receive from a channel with %s: %+v, want %+v", c.what, got, c.want)
			}
		}
	})
}

// If a call hangs, no further calls are made until it returns, and only the first Call waits. The late result is not
// returned by a later Call.
func TestCaller_MakesNoCallWhileOneHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = time.Second
		a := NewCaller[int]()
		var asked atomic.Int32
		release := make(chan struct{})
		hang := func() int {
			asked.Add(1)
			<-release
			return 1
		}

		want := outcome{0, false, limit}
		for n := range 3 {
			if got := measure(func() (int, bool) { return a.Call(limit, hang) }); got != want {
				t.Errorf("call %d of a function that hangs: %+v, want %+v", n, got, want)
			}
			want.took = 0 // further calls return immediately
		}
		if n := asked.Load(); n != 1 || !a.Pending() {
			t.Errorf("function was called %d times, Pending = %v; want 1, true", n, a.Pending())
		}

		close(release)
		synctest.Wait()
		want = outcome{2, true, 0}
		if got := measure(func() (int, bool) { return a.Call(limit, after(0, 2)) }); got != want || a.Pending() {
			t.Errorf("call after the late result: %+v, Pending %v; want %+v, false", got, a.Pending(), want)
		}
	})
}

// Result returns a late result without a new call.
func TestCaller_KeepsLateResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewCaller[int]()
		if _, ok := a.Result(time.Hour); ok || a.Pending() {
			t.Errorf("Result without a call: ok %v, Pending %v; want false, false", ok, a.Pending())
		}
		if !a.Start(after(time.Minute, 1)) || a.Start(after(0, 2)) {
			t.Error("two calls of Start did not return true and then false, because the first call is pending")
		}
		if got, want := measure(func() (int, bool) { return a.Result(time.Second) }), (outcome{0, false, time.Second}); got != want {
			t.Errorf("Result before the call returns: %+v, want %+v", got, want)
		}
		time.Sleep(time.Hour)
		if got, want := measure(func() (int, bool) { return a.Result(0) }), (outcome{1, true, 0}); got != want || a.Pending() {
			t.Errorf("Result an hour later: %+v, Pending %v; want %+v, false", got, a.Pending(), want)
		}
		if !a.Start(after(0, 3)) {
			t.Error("Start after the result was taken returned false, want true")
		}
	})
}

func TestCaller_AllocatesNothing(t *testing.T) {
	a := NewCaller[int]()
	question := func() int { return 7 }
	fewest := 1e9
	for try := 0; try < 5 && fewest > 0; try++ { // a concurrent garbage collection may allocate
		fewest = min(fewest, testing.AllocsPerRun(1000, func() {
			if v, ok := a.Call(time.Minute, question); !ok || v != 7 {
				t.Errorf("Call = %d, %v; want 7, true", v, ok)
			}
		}))
	}
	if fewest >= 1 {
		t.Errorf("%v allocations per call, want 0", fewest)
	}
}

func BenchmarkCaller(b *testing.B) {
	a := NewCaller[int]()
	question := func() int { return 7 }
	b.ReportAllocs()
	for b.Loop() {
		a.Call(time.Minute, question)
	}
}
