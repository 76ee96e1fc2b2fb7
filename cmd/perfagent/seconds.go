package main

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// A seconds is a duration flag that accepts a bare number of seconds.
type seconds struct{ pflag.Value }

func (s seconds) Set(value string) error {
	if n, err := strconv.ParseFloat(value, 64); err == nil && math.Abs(n) < math.MaxInt64/float64(time.Second) {
		value = time.Duration(n * float64(time.Second)).String()
	}
	if err := s.Value.Set(value); err != nil {
		return fmt.Errorf("%q is not a length of time, such as 10s, 500ms, 1h30m or 10, which is seconds", value)
	}

	return nil
}

// takeSeconds makes f accept a bare number of seconds if f is a duration flag.
func takeSeconds(f *pflag.Flag) {
	if f.Value.Type() == "duration" {
		f.Value = seconds{f.Value}
	}
}
