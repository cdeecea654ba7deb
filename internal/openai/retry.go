package openai

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	firstDelay = 500 * time.Millisecond
	lastDelay  = 8 * time.Second
	// maxRetryAfter is the longest delay that a response can impose; beyond it
	// the request fails instead.
	maxRetryAfter = time.Minute
)

// retry permits another attempt. Its header, which may be nil, can determine the
// delay.
type retry struct{ header http.Header }

// retryOf returns a retry if the response permits one: X-Should-Retry decides,
// else the status.
func retryOf(resp *http.Response) *retry {
	permitted := resp.StatusCode == http.StatusRequestTimeout || resp.StatusCode == http.StatusConflict ||
		resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError
	switch resp.Header.Get("X-Should-Retry") {
	case "true":
		permitted = true
	case "false":
		permitted = false
	}
	if !permitted {
		return nil
	}
	return &retry{header: resp.Header}
}

// delay returns how long to wait before the attempt that follows number attempt,
// counted from 0. It returns false if the endpoint demands too long a delay.
func (r *retry) delay(attempt int) (time.Duration, bool) {
	if d, ok := r.demanded(); ok {
		return max(d, 0), d <= maxRetryAfter
	}
	d := min(firstDelay<<min(attempt, 10), lastDelay)
	return d - rand.N(d/4), true //nolint:gosec // no secret
}

// demanded returns the delay that the headers demand, if they do.
func (r *retry) demanded() (time.Duration, bool) {
	for _, h := range []struct {
		name string
		unit time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		value := r.header.Get(h.name)
		if at, err := http.ParseTime(value); err == nil {
			return time.Until(at), true
		}
		if n, err := strconv.ParseFloat(value, 64); err == nil && n >= 0 {
			return time.Duration(min(n*float64(h.unit), float64(2*maxRetryAfter))), true
		}
	}
	return 0, false
}
