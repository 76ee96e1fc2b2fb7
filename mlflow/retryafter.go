package mlflow

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds what a server may ask for, as urllib3 does.
const maxRetryAfter = 6 * time.Hour

// retryAfter reads a Retry-After header: seconds, or a date. What is neither, or past, is 0.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if value[0] >= '0' && value[0] <= '9' {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return 0
		}
		return time.Duration(min(n, int64(maxRetryAfter/time.Second))) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), maxRetryAfter)
}
