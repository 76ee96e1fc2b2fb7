package parallel

import (
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
)

func TestInOrder_KeepsOrder(t *testing.T) {
	t.Parallel()
	var got, want []int
	for i := range 50 {
		for k := range i % 4 {
			want = append(want, 10*i+k)
		}
	}
	err := InOrder(50, func(i int, emit func(int) error) error {
		for k := range i % 4 {
			if err := emit(10*i + k); err != nil {
				return err
			}
		}
		return nil
	}, func(v int) error {
		got = append(got, v)
		return nil
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("consumed %v, error %v; want %v", got, err, want)
	}
}

// InOrder returns the first error in the order of the calls, not of time, and consumes the results before it.
func TestInOrder_ReturnsFirstError(t *testing.T) {
	t.Parallel()
	one, two := errors.New("one"), errors.New("two")
	failed := make(chan struct{})
	taken := 0
	err := InOrder(9, func(i int, emit func(int) error) error {
		switch i {
		case 1:
			<-failed
			return errors.Join(emit(i), one)
		case 2:
			close(failed)
			return two
		}
		return emit(i)
	}, func(int) error {
		taken++
		return nil
	})
	if !errors.Is(err, one) || errors.Is(err, two) || taken != 2 {
		t.Errorf("error %v after %d values; want only %v, after 2 values", err, taken, one)
	}
}

// After consume fails, InOrder delivers no more results, and returns once all calls have returned.
func TestInOrder_StopsWhenConsumeFails(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	var running, most atomic.Int32
	err := InOrder(1000, func(i int, emit func(int) error) error {
		running.Add(1)
		defer running.Add(-1)
		for {
			most.Store(max(most.Load(), int32(i)))
			if err := emit(i); err != nil {
				return err
			}
		}
	}, func(int) error { return enough })
	if !errors.Is(err, enough) || running.Load() != 0 || int(most.Load()) > runtime.GOMAXPROCS(0)+1 {
		t.Errorf("error %v, %d calls still running, highest started call %d; want %v, 0, at most %d",
			err, running.Load(), most.Load(), enough, runtime.GOMAXPROCS(0)+1)
	}
}

func TestInOrder_AcceptsNoCalls(t *testing.T) {
	t.Parallel()
	if err := InOrder(0, func(int, func(int) error) error { return errStopped }, func(int) error { return errStopped }); err != nil {
		t.Errorf("InOrder with n = 0: error %v, want nil", err)
	}
}
