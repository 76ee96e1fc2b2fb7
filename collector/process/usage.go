package process

// Usage is what processes use at one instant. What cannot be read is 0.
type Usage struct {
	// CPUSeconds is user and system time, including that of children that were waited for.
	CPUSeconds float64
	// Private is the bytes of memory that are shared with no other process.
	Private            float64
	Processes, Threads float64
}

// Plus returns the sum of two Usages.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.CPUSeconds + v.CPUSeconds, u.Private + v.Private, u.Processes + v.Processes, u.Threads + v.Threads}
}
