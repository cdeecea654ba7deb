package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
)

// lineInterval is the interval of progress lines where no bar can be drawn.
const lineInterval = 5 * time.Second

// progress reports the progress of a task: as a bar on a terminal, as lines
// elsewhere, and not at all with --json.
type progress struct {
	title string
	total int64 // 0 while unknown
	bytes bool
	bar   *progressbar.ProgressBar // nil if none can be drawn
	lines io.Writer                // nil with --json
	next  time.Time                // when the next line is due
	at    int64
}

// progress starts to report a task. With bytes, the counts are bytes.
func (t terminal) progress(title string, total int64, bytes bool) *progress {
	p := &progress{title: title, total: total, bytes: bytes}
	switch {
	case t.live:
		p.bar = progressbar.NewOptions64(max(total, -1), progressbar.OptionSetWriter(t.err), progressbar.OptionSetDescription(title),
			progressbar.OptionShowBytes(bytes), progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())
	case t.err != nil:
		p.lines, p.next = t.err, time.Now().Add(lineInterval)
	}
	return p
}

// set reports that n of total are done. A total of 0 means unknown.
func (p *progress) set(n, total int64) {
	p.at, p.total = n, total
	if p.bar != nil {
		if total > 0 && p.bar.GetMax64() != total {
			p.bar.ChangeMax64(total)
		}
		_ = p.bar.Set64(n) // a failure to draw the bar must not stop the task
	} else if p.lines != nil && time.Now().After(p.next) {
		p.line()
		p.next = time.Now().Add(lineInterval)
	}
}

// end removes the bar, or prints the final line.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	} else if p.lines != nil {
		p.line()
	}
}

func (p *progress) line() {
	count := humanize.Comma
	if p.bytes {
		count = func(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }
	}
	if p.total > 0 {
		fmt.Fprintf(p.lines, "%s: %s of %s\n", p.title, count(p.at), count(p.total))
		return
	}
	fmt.Fprintf(p.lines, "%s: %s\n", p.title, count(p.at))
}

// progressReader reports how much was read.
type progressReader struct {
	io.Reader
	p *progress
}

func (r *progressReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.p.set(r.p.at+int64(n), r.p.total)
	return n, err //nolint:wrapcheck // io.Reader's contract
}
