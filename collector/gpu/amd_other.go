//go:build !linux

package gpu

import "context"

// card is one of AMD's, which are only looked for on Linux.
type card struct{}

func findCards(string) []card { return nil }

func (m *Monitor) followCards(context.Context) {}
