package audit_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mnemo-dev/mnemo/internal/audit"
)

const testTenant = "018f0000-0000-7000-8000-000000000001"

// chain returns sealed records.
func chain(t testing.TB, n int) []audit.Record {
	t.Helper()
	var head audit.Head
	out := make([]audit.Record, n)
	for i := range out {
		out[i] = audit.Record{
			At: time.Date(2026, 1, 2, 3, 4, i, 5000, time.UTC), Tenant: testTenant, User: "pseudonym", Actor: "user", Via: "token",
			Fingerprint: "0123456789ab", Verb: audit.MemoryCreate, Objects: []string{fmt.Sprint("memory-", i)},
		}
		if err := head.Seal(&out[i]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func file(t testing.TB, h audit.Header, records ...audit.Record) string {
	t.Helper()
	h.Tenant = testTenant
	var to bytes.Buffer
	w := audit.NewWriter(&to, h)
	for _, r := range records {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return to.String()
}

func TestVerify(t *testing.T) {
	t.Parallel()
	all := chain(t, 5)
	anchor := func(r audit.Record) audit.Anchor { return audit.Anchor{Sequence: r.Sequence, Hash: r.Hash} }
	for name, c := range map[string]struct {
		file    string
		anchors []audit.Anchor
		records int64
		last    audit.Anchor
	}{
		"a whole chain":                      {file(t, audit.Header{}, all...), nil, 5, anchor(all[4])},
		"an empty chain":                     {file(t, audit.Header{}), nil, 0, audit.Anchor{}},
		"a chain without its expired start":  {file(t, audit.Header{}, all[2:]...), nil, 3, anchor(all[4])},
		"the anchors are in the file":        {file(t, audit.Header{}, all...), []audit.Anchor{anchor(all[0]), anchor(all[4])}, 5, anchor(all[4])},
		"the anchor is the expired record":   {file(t, audit.Header{}, all[2:]...), []audit.Anchor{anchor(all[1])}, 3, anchor(all[4])},
		"a user's records, not consecutive":  {file(t, audit.Header{User: true}, all[0], all[3]), nil, 2, anchor(all[3])},
		"a user's records after a page":      {file(t, audit.Header{User: true, After: 2}, all[3]), nil, 1, anchor(all[3])},
		"a user without records has nothing": {file(t, audit.Header{User: true}), nil, 0, audit.Anchor{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := audit.Verify(strings.NewReader(c.file), c.anchors...)
			if err != nil {
				t.Fatal(err)
			}
			if got.Records != c.records {
				t.Errorf("%d records, want %d", got.Records, c.records)
			}
			if diff := cmp.Diff(c.last, got.Last); diff != "" {
				t.Errorf("last record (-want +got):\n%s", diff)
			}
		})
	}
}

// Each way of tampering with a file is detected.
func TestVerifyDetects(t *testing.T) {
	t.Parallel()
	all := chain(t, 6)
	whole := strings.SplitAfter(file(t, audit.Header{}, all...), "\n")
	whole = whole[:len(whole)-1]
	lines := func(change func([]string) []string) string { return strings.Join(change(slices.Clone(whole)), "") }
	forged := chain(t, 6)
	forged[5].Verb = audit.MemoryDelete
	head := audit.Head{Sequence: 5, Hash: forged[4].Hash}
	if err := head.Seal(&forged[5]); err != nil {
		t.Fatal(err)
	}
	last := audit.Anchor{Sequence: 6, Hash: all[5].Hash}
	for name, c := range map[string]struct {
		file    string
		anchors []audit.Anchor
		want    string
	}{
		"an edited record": {lines(func(l []string) []string {
			l[3] = strings.Replace(l[3], "memory-2", "memory-9", 1)
			return l
		}), nil, "line 4: record 3 was edited"},
		"an edited time": {lines(func(l []string) []string {
			l[3] = strings.Replace(l[3], "2026-", "2025-", 1)
			return l
		}), nil, "line 4: record 3 was edited"},
		"an added field": {lines(func(l []string) []string {
			l[3] = strings.Replace(l[3], `,"verb"`, `,"note":"x","verb"`, 1)
			return l
		}), nil, "line 4: the line was edited"},
		"a dropped record":       {lines(func(l []string) []string { return slices.Delete(l, 3, 4) }), nil, "line 4: record 4 follows record 2: records were dropped"},
		"a dropped first record": {lines(func(l []string) []string { return slices.Delete(l, 1, 2) }), nil, "line 2: record 2 follows record 0: records were dropped"},
		"a dropped last record":  {lines(func(l []string) []string { return slices.Delete(l, 6, 7) }), nil, "line 7: the file has 5 records up to 5, but must have 6 up to 6"},
		"reordered records": {lines(func(l []string) []string {
			l[2], l[3] = l[3], l[2]
			return l
		}), nil, "line 3: record 3 follows record 1"},
		"a repeated record":            {lines(func(l []string) []string { return slices.Insert(l, 3, l[2]) }), nil, "line 4: record 2 follows record 2: records were reordered or repeated"},
		"a cut-off file":               {lines(func(l []string) []string { return l[:4] }), nil, "the file is incomplete"},
		"a cut-off line":               {lines(func(l []string) []string { return append(l[:3], l[3][:20]) }), nil, "line 4: not a line"},
		"lines after the last":         {lines(func(l []string) []string { return append(l, l[1]) }), nil, "line 9: the file has data after its footer"},
		"no header":                    {lines(func(l []string) []string { return l[1:] }), nil, "line 1: "},
		"a record of another tenant":   {lines(func(l []string) []string { l[0] = strings.Replace(l[0], "0001", "0002", 1); return l }), nil, "line 2: record 1 is of another tenant"},
		"a long line":                  {whole[0] + strings.Repeat("x", 1<<20) + "\n", nil, "line 2: not a line of an audit file: it is longer than 65536 bytes"},
		"an empty file":                {"", nil, "the file is incomplete"},
		"a chain cut off at its end":   {file(t, audit.Header{}, all[:5]...), []audit.Anchor{last}, "does not contain record 6 of the anchor"},
		"a rewritten chain":            {file(t, audit.Header{}, forged...), []audit.Anchor{last}, "line 7: record 6 differs from its anchor"},
		"a user's edited record":       {strings.Replace(file(t, audit.Header{User: true}, all[0], all[3]), "memory-3", "memory-9", 1), nil, "line 3: record 4 was edited"},
		"a user's dropped record":      {dropLine(file(t, audit.Header{User: true}, all[0], all[2], all[3]), 2), nil, "line 4: the file has 2 records"},
		"a user's reordered records":   {file(t, audit.Header{User: true}, all[3], all[0]), nil, "line 3: record 1 follows record 4"},
		"a user's dropped last record": {dropLine(file(t, audit.Header{User: true}, all[0], all[2]), 2), nil, "line 3: the file has 1 records up to 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := audit.Verify(strings.NewReader(c.file), c.anchors...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %q", err, c.want)
			}
		})
	}
}

func dropLine(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(slices.Delete(lines, n, n+1), "")
}

func TestParseAnchor(t *testing.T) {
	t.Parallel()
	want := audit.Anchor{Sequence: 7, Hash: strings.Repeat("ab", 32)}
	if got, err := audit.ParseAnchor(want.String()); err != nil || got != want {
		t.Errorf("ParseAnchor(%q) = %v, %v", want, got, err)
	}
	for _, s := range []string{"", "7", "x:ab", "7:zz", "0:" + want.Hash, "7:abcd"} {
		if _, err := audit.ParseAnchor(s); err == nil {
			t.Errorf("ParseAnchor(%q) succeeded", s)
		}
	}
}

// No change of a single byte of a file passes.
func FuzzVerify(f *testing.F) {
	whole := file(f, audit.Header{}, chain(f, 3)...)
	f.Add(10, byte('x'))
	f.Add(len(whole)-3, byte('0'))
	f.Fuzz(func(t *testing.T, at int, b byte) {
		if at < 0 || at >= len(whole)-1 || whole[at] == b { // a missing final newline is harmless
			return
		}
		edited := whole[:at] + string([]byte{b}) + whole[at+1:]
		if _, err := audit.Verify(strings.NewReader(edited)); err == nil {
			t.Errorf("changing byte %d to %q passes", at, b)
		}
	})
}
