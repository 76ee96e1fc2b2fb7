// Package retry has helpers for clients that retry: a wait that ends with a context, and the header Retry-After.
package retry

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Wait waits for d. If ctx ends first, it returns ctx's error immediately.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// MaxAfter is the longest wait that a server may request. urllib3 has the same limit.
const MaxAfter = 6 * time.Hour

// After returns the wait that the header Retry-After requests, in seconds or as a date, but at most MaxAfter. It
// returns 0 if the header is missing or invalid, or if the date has passed.
func After(header http.Header) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if date, err := http.ParseTime(value); err == nil {
		return min(max(time.Until(date), 0), MaxAfter)
	}
	seconds, err := strconv.ParseUint(value, 10, 63)
	if err != nil {
		return 0
	}
	return time.Duration(min(seconds, uint64(MaxAfter/time.Second))) * time.Second
}
