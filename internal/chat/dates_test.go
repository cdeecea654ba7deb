package chat

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A stamp is the time in UTC, cut to milliseconds.
func TestStamp(t *testing.T) {
	t.Parallel()
	for want, at := range map[string]time.Time{
		"2025-05-09T14:30:00.000Z":  time.Date(2025, 5, 9, 14, 30, 0, 0, time.UTC),
		"2025-05-09T12:30:00.007Z":  time.Date(2025, 5, 9, 14, 30, 0, 7_999_999, time.FixedZone("", 2*60*60)),
		"0001-01-01T00:00:00.000Z":  {},
		"9999-12-31T23:59:59.999Z":  time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		"12025-05-09T14:30:00.050Z": time.Date(12025, 5, 9, 14, 30, 0, 50_000_000, time.UTC),
	} {
		if got := Stamp(at); got != want {
			t.Errorf("Stamp(%v) = %s, want %s", at, got, want)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		at := time.Unix(r.Int64N(1<<38)-1<<36, r.Int64N(1e9)).In(time.FixedZone("", r.IntN(86400)-43200))
		if got, want := Stamp(at), at.UTC().Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Errorf("Stamp(%v) = %s, want %s", at, got, want)
		}
	}
}

func BenchmarkStamp(b *testing.B) {
	at := time.Date(2025, 5, 9, 14, 30, 0, 7_999_999, time.UTC)
	for b.Loop() {
		Stamp(at)
	}
}
