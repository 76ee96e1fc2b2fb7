package gpu

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/perfagent/perfagent/collector/series"
)

// A row holds the values of one device at one time.
type row struct {
	Device
	State
	missing []series.Missing // What has no device prefix: "utilization_pct"
}

// addMissing records the value named what as missing, with the reason why.
func (r *row) addMissing(what, why string) {
	r.missing = append(r.missing, series.Missing{What: what, Code: NoValue, Why: why})
}

// An entry is the last row of a device, with the time when it was read.
type entry struct {
	row
	seen time.Time
}

// A vendorState is the known state of one vendor's devices.
type vendorState struct {
	entries      []entry
	surplus      int       // most devices beyond maxDevices in any round
	roundSurplus int       // devices beyond maxDevices in the current round so far
	complete     bool      // all devices are known, or no more will become known
	nextIndex    int       // first index after all devices
	queryStarted time.Time // start of the current or last query
	updatedAt    time.Time // time of the last row
	message      string    // last line of output that is not a row
	messageAt    time.Time
	missing      []series.Missing // fields that this nvidia-smi does not know
	restartCause error            // why the query was restarted
	err          error            // why there will be no more values
}

// put stores r. A second row of the first device completes a round.
func (b *vendorState) put(r row, now time.Time) {
	b.updatedAt = now
	for i := range b.entries {
		if !b.entries[i].same(r.Device) {
			continue
		}
		b.entries[i] = entry{r, now}
		if i == 0 {
			b.complete, b.surplus, b.roundSurplus = true, max(b.surplus, b.roundSurplus), 0
		}
		return
	}

	if len(b.entries) == maxDevices {
		b.roundSurplus = min(b.roundSurplus+1, 1<<20)
		b.surplus = max(b.surplus, b.roundSurplus)
		return
	}

	b.entries = append(b.entries, entry{r, now})
	b.nextIndex = max(b.nextIndex, r.Index+1)
}

// same reports whether e is the entry of d. It prefers the UUID, because indexes change when another device vanishes.
func (e *entry) same(d Device) bool {
	if e.UUID != "" && d.UUID != "" {
		return e.UUID == d.UUID
	}
	return e.Index == d.Index
}

// add appends the devices and missing values to r. It adds base to the indexes of the devices.
func (b *vendorState) add(r *Reading, now time.Time, stale time.Duration, base int) {
	missing := func(what string, code series.ReasonCode, why string) {
		r.Missing = append(r.Missing, series.Missing{What: what, Code: code, Why: why})
	}
	live := b.err == nil && now.Sub(b.updatedAt) <= stale
	for i := range b.entries {
		e := b.entries[i]
		e.Index += base
		gpu := "gpu_" + strconv.Itoa(e.Index)
		if old := now.Sub(e.seen); !live || old > stale {
			e.State, e.missing = unknownState(), nil
			if live { // otherwise, all devices have the same reason
				missing(gpu, Silent, fmt.Sprintf("no reading for %.0f s", old.Seconds()))
			}
		}
		for _, m := range e.missing {
			missing(gpu+"_"+m.What, m.Code, m.Why)
		}
		r.Devices, r.States = append(r.Devices, e.Device), append(r.States, e.State)
	}

	if len(b.entries) > 0 {
		r.Missing = append(r.Missing, b.missing...)
	}
	if b.surplus > 0 {
		all := maxDevices + b.surplus
		missing("gpu", NotFollowed, fmt.Sprintf("%d devices: only the first %d are followed", all, maxDevices))
		last := &r.Missing[len(r.Missing)-1]
		last.Count, last.Total = int64(b.surplus), int64(all)
	}
	if b.restartCause != nil {
		missing("gpu", Restarted, "started again: "+b.restartCause.Error())
	}
	if live && b.message != "" && now.Sub(b.messageAt) <= stale {
		missing("gpu", NotUnderstood, "nvidia-smi: "+b.message)
	}
}

// check returns the reason why nvidia-smi does not respond, or nil if it does.
func (b *vendorState) check(now time.Time, stale time.Duration) error {
	switch {
	case b.err != nil:
		return b.err
	case b.queryStarted.IsZero():
		return errors.New("query GPUs: nvidia-smi has not been started yet")
	case b.message != "" && b.messageAt.After(b.updatedAt) && (b.updatedAt.IsZero() || now.Sub(b.updatedAt) > stale):
		return errors.New("query GPUs: nvidia-smi printed something unexpected: " + b.message)
	case b.updatedAt.IsZero():
		return fmt.Errorf("query GPUs: nvidia-smi has printed nothing yet, %.1f s after its start",
			now.Sub(b.queryStarted).Seconds())
	case now.Sub(b.updatedAt) > stale:
		return fmt.Errorf("query GPUs: nvidia-smi has printed nothing for %.0f s", now.Sub(b.updatedAt).Seconds())
	}
	return nil
}
