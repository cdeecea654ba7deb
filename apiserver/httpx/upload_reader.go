package httpx

import (
	"io"
	"net"
	"time"

	"github.com/mnemo-dev/mnemo/internal/fault"
)

const (
	// uploadIdleTimeout is how long a client may send nothing. There is no limit on
	// the duration of an upload.
	uploadIdleTimeout = 30 * time.Second
	// uploadRateWindow is the time of waiting for a client over which its upload must
	// average minUploadRate, bytes per second. The chunks of a file thus arrive before the
	// upload expires, even over a slow connection.
	uploadRateWindow = time.Minute
	minUploadRate    = 8 << 10
)

// ErrSlowUpload is the error for an upload below the minimum rate.
var ErrSlowUpload error = fault.New(fault.Invalid,
	"the upload is too slow: at least %d KiB/s are required, on average over a minute", minUploadRate>>10)

// uploadReader extends the read deadline with every read after the first, and fails below the minimum rate.
// The time in which the server stores what it has read does not count.
type uploadReader struct {
	r        io.Reader
	conn     net.Conn
	now      func() time.Time
	waited   time.Duration // in reads since the last check of the rate
	received int64         // bytes meanwhile
	begun    bool
}

// NewUploadReader returns a reader of an upload from a client. It fails with ErrSlowUpload.
func NewUploadReader(r io.Reader, client net.Conn) io.Reader {
	return &uploadReader{r: r, conn: client, now: time.Now}
}

func (u *uploadReader) Read(b []byte) (int, error) {
	begin := u.now()
	if u.begun {
		if err := u.conn.SetReadDeadline(begin.Add(uploadIdleTimeout)); err != nil {
			return 0, err
		}
	}
	u.begun = true
	n, err := u.r.Read(b)
	u.waited += u.now().Sub(begin)
	u.received += int64(n)
	if err != nil || u.waited < uploadRateWindow {
		return n, err
	}
	if float64(u.received) < minUploadRate*u.waited.Seconds() {
		return 0, ErrSlowUpload
	}
	u.waited, u.received = 0, 0
	return n, nil
}
