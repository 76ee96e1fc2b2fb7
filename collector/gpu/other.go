//go:build !linux

package gpu

import (
	"context"
	"errors"
	"os"
)

// A process is empty, because nvidia-smi is run only on Linux.
type process struct{}

func (c *child) fork(string, []string, []string, *os.File, *os.File) (int, error) {
	return 0, errors.ErrUnsupported
}

func (c *child) identify(bool) {}
func (c *child) signal(bool)   {}
func (c *child) reap() bool    { return true }
func (c *child) release()      {}

// A card is an AMD GPU. AMD GPUs are supported only on Linux.
type card struct{}

func findCards(string) []card { return nil }

func (m *Monitor) followCards(context.Context) {}
