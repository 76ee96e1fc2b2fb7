package intake

import (
	"testing"
	"time"
)

func TestBudget_PausesUntilNextTenthWhenUsedUp(t *testing.T) {
	const ms = time.Millisecond
	b := budget{most: maxUse}
	for i := range 4 { // 60 ms in each of the first four tenths
		at := time.Duration(i) * 100 * ms
		if p := b.pause(at); p != 0 {
			t.Fatalf("pause at %v = %v, want 0 before the budget is used up", at, p)
		}
		b.spend(at+10*ms, 60*ms)
	}
	b.spend(350*ms, 10*ms)
	if p := b.pause(360 * ms); p != 40*ms {
		t.Errorf("pause at 360 ms = %v, want 40 ms", p)
	}
	if p := b.pause(950 * ms); p != 50*ms {
		t.Errorf("pause at 950 ms = %v, want 50 ms", p)
	}
	if p := b.pause(1000 * ms); p != 0 { // the first tenth is more than a second ago
		t.Errorf("pause at 1 s = %v, want 0", p)
	}
	b.spend(1010*ms, 60*ms)
	if p := b.pause(1020 * ms); p != 80*ms {
		t.Errorf("pause at 1.02 s = %v, want 80 ms", p)
	}
	if p := b.pause(time.Hour + 20*ms); p != 0 {
		t.Errorf("pause after an hour = %v, want 0", p)
	}
	b.spend(time.Hour+30*ms, time.Second)
	if p := b.pause(time.Hour + 30*ms); p != 70*ms {
		t.Errorf("pause after a second of CPU time = %v, want 70 ms", p)
	}
}
