//go:build !linux

package gpu

import "context"

// A card is an AMD GPU. AMD GPUs are supported on Linux only.
type card struct{}

func findCards(string) []card { return nil }

func (m *Monitor) followCards(context.Context) {}
