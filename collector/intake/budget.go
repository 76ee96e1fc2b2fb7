package intake

import "time"

// A budget limits the CPU time of the sockets per second.
type budget struct {
	most  time.Duration        // limit
	slots [slots]time.Duration // CPU time used in each tenth of the last second
	slot  int64                // number of the newest tenth
}

const (
	slots    = 10
	slotTime = time.Second / slots
	maxUse   = time.Second / 4 // a quarter of a core
	maxChunk = 64 << 10        // bytes read between two checks of the budget
	maxReads = 256             // datagrams read between two checks of the budget
)

// spend adds CPU time that was used at the time at. Times are relative to a fixed moment.
func (b *budget) spend(at, used time.Duration) {
	b.move(at)
	b.slots[b.slot%slots] += used
}

// move advances to the tenth of a second that contains at.
func (b *budget) move(at time.Duration) {
	now := int64(at / slotTime)
	for old := max(b.slot, now-slots); old < now; old++ {
		b.slots[(old+1)%slots] = 0
	}
	b.slot = now
}

// pause returns how long reading must pause: until the next tenth if the budget is used up, otherwise 0.
func (b *budget) pause(at time.Duration) time.Duration {
	b.move(at)
	var used time.Duration
	for _, s := range b.slots {
		used += s
	}
	if used < b.most {
		return 0
	}
	return slotTime - at%slotTime
}
