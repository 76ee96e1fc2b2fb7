package process

// Usage is the usage of processes at one instant. Unknown numbers are 0.
type Usage struct {
	// CPUSeconds is user and system time, including that used by reaped children.
	CPUSeconds float64
	// Private is the memory, in bytes, that no other process shares.
	Private            float64
	Processes, Threads float64
}

// Plus returns u + v.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.CPUSeconds + v.CPUSeconds, u.Private + v.Private, u.Processes + v.Processes, u.Threads + v.Threads}
}
