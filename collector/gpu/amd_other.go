//go:build !linux

package gpu

import "context"

// A card is one of AMD's. They are looked for on Linux only.
type card struct{}

func findCards(string) []card { return nil }

func (m *Monitor) followCards(context.Context) {}
