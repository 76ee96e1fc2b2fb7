package intake

import "time"

// A budget limits the CPU time of the sockets over a second.
type budget struct {
	most  time.Duration        // that may be used
	slots [slots]time.Duration // what was used in each tenth of the last second
	slot  int64                // the number of the newest tenth
}

const (
	slots    = 10
	slotTime = time.Second / slots
	maxUse   = time.Second / 4 // a quarter of a core
	maxChunk = 64 << 10        // bytes that are read before the budget is looked at
	maxReads = 256             // datagrams likewise
)

// spend notes CPU time that was used at a moment, which is the time since some fixed moment.
func (b *budget) spend(at, used time.Duration) {
	b.move(at)
	b.slots[b.slot%slots] += used
}

// move goes on to the tenth of a moment.
func (b *budget) move(at time.Duration) {
	now := int64(at / slotTime)
	for old := max(b.slot, now-slots); old < now; old++ {
		b.slots[(old+1)%slots] = 0
	}
	b.slot = now
}

// pause returns how long nothing may be read: until the next tenth if the budget is used up, otherwise 0.
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
