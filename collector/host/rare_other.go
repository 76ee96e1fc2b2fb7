//go:build !linux

package host

import (
	"time"

	"github.com/perfagent/perfagent/collector/series"
)

// Rare sources exist on Linux only.
type rareSources struct {
	opened bool
	mounts []Mount
	gaps   []series.Gap
	energy noEnergy
	heat   noHeat
}

type (
	noEnergy struct{}
	noHeat   struct{}
)

func newRareSources(*Reader) rareSources { return rareSources{opened: true} }

func (rareSources) close() {}

func (noEnergy) read(*Reader, time.Duration) (*Energy, error) { return nil, nil }
func (noHeat) read(*Reader, time.Duration) (*Heat, error)     { return nil, nil }

func openNFS(*Reader) deviceReader    { return noDevices }
func openLustre(*Reader) deviceReader { return noDevices }

func noDevices(time.Duration, []Device) ([]Device, error) { return nil, nil }
