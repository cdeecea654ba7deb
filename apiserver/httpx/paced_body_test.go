package httpx

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A client that reads slowly for longer than a pause is disconnected. Time that the server
// itself needs does not count.
func TestPacedBodyRequiresPace(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		client   time.Duration // pause before each block
		server   time.Duration // pause before each block
		complete bool
	}{
		"Nothing":    {"a client that reads nothing would hold a slot", time.Hour, 0, false},
		"Trickle":    {"1 KiB/s is within the timeout of each block, but would hold a slot for an hour", 4 * time.Second, 0, false},
		"Slow":       {"128 KiB/s is above the minimum", time.Second / 32, 0, true},
		"SlowServer": {"the client reads each block immediately", 0, 20 * time.Second, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				took, err := paced(t, 100, tc.client, tc.server)
				if complete := err == nil; complete != tc.complete {
					t.Errorf("complete = %t (%v), want %t: %s", complete, err, tc.complete, tc.reason)
				}
				if !tc.complete && took > 2*time.Minute {
					t.Errorf("the slot was held for %s, want at most 2m: %s", took, tc.reason)
				}
			})
		})
	}
}

// paced sends blocks of 4 KiB through a paced body to a client. Both sides pause before
// each block.
func paced(t *testing.T, blocks int, client, server time.Duration) (took time.Duration, err error) {
	t.Helper()
	const block = 4 << 10
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	source, archive := io.Pipe()
	conn, remote := net.Pipe()
	pause := func(d time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for range blocks {
			pause(server)
			if _, err := archive.Write(make([]byte, block)); err != nil {
				return
			}
		}
		_ = archive.Close()
	})
	wait.Go(func() {
		for {
			pause(client)
			if _, err := io.ReadFull(remote, make([]byte, block)); err != nil {
				return
			}
		}
	})
	begin := time.Now()
	body := NewPacedBody(ctx, source, conn, time.Minute)
	_, err = io.CopyBuffer(conn, struct{ io.Reader }{body}, make([]byte, block))
	took = time.Since(begin)
	cancel()
	_ = body.Close()
	_ = conn.Close()
	wait.Wait()
	return took, err
}
