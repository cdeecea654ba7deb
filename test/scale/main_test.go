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
	tenants  = flag.Int("tenants", 30, "number of Tenants, with two users each, that exist when the operator starts")
	idle     = flag.Duration("idle", 6*time.Second, "idle time, in which the operator resyncs at least three times")
	ratio    = flag.Float64("ratio", 0, "maximum time of the operator relative to the bare calls; 0 skips the measurement")
	alone    = flag.Bool("alone", false, "no other test uses the Kubernetes API server: allow no write request at all")
	patience = flag.Duration("patience", installation.Patience, "maximum time until all Tenants are ready")
)

// mostMemory is the operator's memory limit in bytes.
const mostMemory = 150 << 20

func TestMain(m *testing.M) {
	flag.Parse()
	controllers.SetLogger(slog.New(slog.DiscardHandler))
	m.Run()
}
