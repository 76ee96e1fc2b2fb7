//go:build race

package pusher

const raceEnabled = true
