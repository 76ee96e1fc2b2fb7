//go:build !race

package pusher

const raceEnabled = false
