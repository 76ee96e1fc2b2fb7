//go:build !linux

package collector

func oomVictims(Instant) []Victim { return nil }
