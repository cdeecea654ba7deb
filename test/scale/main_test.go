package scale_test

import (
	"flag"
	"log/slog"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/test/installation"
)

var (
	tenants  = flag.Int("tenants", 30, "Tenants of two users that are there when the operator starts")
	idle     = flag.Duration("idle", 6*time.Second, "how long the operator has nothing to do; it resyncs at least three times")
	ratio    = flag.Float64("ratio", 0, "most time the operator may take, times that of the calls alone; 0 to measure none")
	alone    = flag.Bool("alone", false, "nobody else writes to the test's Kubernetes: hold it to no write at all")
	patience = flag.Duration("patience", installation.Patience, "longest wait for all Tenants to be ready")
)

// mostMemory is what the operator may take at any time, bytes.
const mostMemory = 150 << 20

func TestMain(m *testing.M) {
	flag.Parse()
	controllers.SetLogger(slog.New(slog.DiscardHandler))
	installation.Main(m)
}
