package openai

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryOf(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status int
		should string
		want   bool
	}{
		"rate limited":       {status: 429, want: true},
		"request timeout":    {status: 408, want: true},
		"conflict":           {status: 409, want: true},
		"server error":       {status: 502, want: true},
		"bad request":        {status: 400},
		"header permits":     {status: 400, should: "true", want: true},
		"header forbids":     {status: 503, should: "false"},
		"header is unknown":  {status: 503, should: "maybe", want: true},
		"unauthorized":       {status: 401},
		"payload too large":  {status: 413},
		"gateway timed out":  {status: 504, want: true},
		"resource not found": {status: 404},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := &http.Response{StatusCode: tt.status, Header: http.Header{}}
			resp.Header.Set("X-Should-Retry", tt.should)
			if got := retryOf(resp) != nil; got != tt.want {
				t.Errorf("retry permitted: %t, want %t", got, tt.want)
			}
		})
	}
}

func TestRetryDelay(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		header   map[string]string
		attempt  int
		min, max time.Duration
		tooLong  bool
	}{
		"first backoff":         {min: 375 * time.Millisecond, max: 500 * time.Millisecond},
		"third backoff":         {attempt: 2, min: 1500 * time.Millisecond, max: 2 * time.Second},
		"backoff has a maximum": {attempt: 100, min: 6 * time.Second, max: 8 * time.Second},
		"seconds":               {header: map[string]string{"Retry-After": "3"}, min: 3 * time.Second, max: 3 * time.Second},
		"milliseconds first":    {header: map[string]string{"Retry-After-Ms": "20", "Retry-After": "3"}, min: 20 * time.Millisecond, max: 20 * time.Millisecond},
		"a past date":           {header: map[string]string{"Retry-After": "Mon, 02 Jan 2006 15:04:05 GMT"}},
		"not a number":          {header: map[string]string{"Retry-After": "NaN"}, min: 375 * time.Millisecond, max: 500 * time.Millisecond},
		"negative":              {header: map[string]string{"Retry-After": "-1"}, min: 375 * time.Millisecond, max: 500 * time.Millisecond},
		"an hour":               {header: map[string]string{"Retry-After": "3600"}, tooLong: true},
		"overflow":              {header: map[string]string{"Retry-After": "1e300"}, tooLong: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &retry{header: http.Header{}}
			for k, v := range tt.header {
				r.header.Set(k, v)
			}
			got, ok := r.delay(tt.attempt)
			if ok == tt.tooLong {
				t.Fatalf("delay permitted: %t, want %t", ok, !tt.tooLong)
			}
			if ok && (got < tt.min || got > tt.max) {
				t.Errorf("delay = %v, want %v to %v", got, tt.min, tt.max)
			}
		})
	}
}
