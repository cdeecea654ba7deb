package httpx

import (
	"errors"
	"net"
	"testing"
	"time"
)

// pacedClient is a client that sends size bytes per interval of a clock.
type pacedClient struct {
	net.Conn

	clock    time.Time
	size     int
	interval time.Duration
}

func (*pacedClient) SetReadDeadline(time.Time) error { return nil }

func (p *pacedClient) Read(b []byte) (int, error) {
	p.clock = p.clock.Add(p.interval)
	return min(p.size, len(b)), nil
}

// An upload must have the minimum rate on average over a minute in which the server waits.
// Before, a byte per 29 s kept a connection.
func TestUploadsHaveAMinimumRate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason   string
		size     int
		interval time.Duration
		stored   time.Duration // after each read
		want     int           // reads until the error, 0 for none
	}{
		"MinRate":  {"An upload of the minimum rate takes as long as necessary.", minUploadRate, time.Second, 0, 0},
		"Bursts":   {"The rate is an average.", 25 * minUploadRate, 25 * time.Second, 0, 0},
		"Storing":  {"Only the client's time counts.", minUploadRate, time.Second, 29 * time.Second, 0},
		"TooSlow":  {"Half of the minimum rate is an error after a minute.", minUploadRate / 2, time.Second, 0, 60},
		"Trickles": {"So is a byte per timeout.", 1, 29 * time.Second, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := &pacedClient{size: tc.size, interval: tc.interval}
			r := &uploadReader{r: client, conn: client, now: func() time.Time { return client.clock }}
			b := make([]byte, 25*minUploadRate)
			var read int64
			for i := range 600 {
				n, err := r.Read(b)
				read += int64(n)
				client.clock = client.clock.Add(tc.stored)
				if (err != nil) != (i+1 == tc.want) {
					t.Fatalf("%s Read %d: %v, want an error at read %d", tc.reason, i+1, err, tc.want)
				}
				if err != nil {
					if !errors.Is(err, ErrSlowUpload) {
						t.Errorf("%s Error %q", tc.reason, err)
					}
					return
				}
			}
			if want := int64(600 * tc.size); read != want {
				t.Errorf("%s %d bytes read, want %d", tc.reason, read, want)
			}
		})
	}
}
