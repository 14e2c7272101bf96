package oncrpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weft-rdma/weft/internal/nettest"
)

// readAll reads records until there is an error.
func readAll(r io.Reader, limits RecordLimits) (records []string, err error) {
	reader := NewRecordReader(r, limits)
	for {
		b, err := reader.AppendRecord([]byte("-"))
		if err != nil {
			if string(b) != "-" {
				return records, errors.New("AppendRecord returned octets with an error")
			}
			return records, err
		}
		records = append(records, string(b[1:]))
	}
}

func TestRecordsAreMadeOfFragments(t *testing.T) {
	wire := annotated(t, `
		80000005 6162636465   one fragment: "abcde", and no roundup
		00000002 6667         two: "fg"
		80000003 68696a       and "hij"
		80000000              nothing
		00000000              an empty one
		00000001 6b           "k"
		00000000              another
		80000000              the end of it`)
	want := []string{"abcde", "fghij", "", "k"}
	for name, r := range map[string]io.Reader{
		"at once":        bytes.NewReader(wire),
		"octet by octet": iotest.OneByteReader(bytes.NewReader(wire)),
		"in halves":      iotest.HalfReader(bytes.NewReader(wire)),
		"with the end":   iotest.DataErrReader(bytes.NewReader(wire)),
		"buffered":       bufio.NewReaderSize(bytes.NewReader(wire), 16),
	} {
		if got, err := readAll(r, RecordLimits{}); err != io.EOF || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestARecordCanBeReadInPieces(t *testing.T) {
	wire := annotated(t, `
		00000003 616263
		80000005 6465666768
		00000002 7879
		80000001 7a
		80000001 21`)
	r := NewRecordReader(bytes.NewReader(wire), RecordLimits{})
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("before Next: %d, %v", n, err)
	}
	if err := r.Next(); err != nil {
		t.Fatal(err)
	}
	head, rest := make([]byte, 4), make([]byte, 10)
	if _, err := io.ReadFull(r, head); err != nil || string(head) != "abcd" {
		t.Errorf("%q, %v", head, err)
	}
	if n, err := r.Read(nil); n != 0 || err != nil {
		t.Errorf("reading nothing: %d, %v", n, err)
	}
	if n, err := io.ReadFull(r, rest); err != io.ErrUnexpectedEOF || string(rest[:n]) != "efgh" {
		t.Errorf("%q, %v", rest[:n], err)
	}
	if n, err := r.Read(rest); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
	if err := r.Next(); err != nil { // and reads nothing of it
		t.Fatal(err)
	}
	if b, err := r.AppendRecord(nil); err != nil || string(b) != "!" {
		t.Errorf("%q, %v", b, err)
	}
	if err := r.Next(); err != io.EOF {
		t.Errorf("then %v", err)
	}
}

func TestAStreamThatEndsWithinARecordIsNotAnEnd(t *testing.T) {
	wire := unhex(t, "00000002 6162 80000003 636465")
	for n := 1; n < len(wire); n++ {
		for name, r := range map[string]io.Reader{
			"at once":      bytes.NewReader(wire[:n]),
			"with the end": iotest.DataErrReader(bytes.NewReader(wire[:n])),
		} {
			if got, err := readAll(r, RecordLimits{}); got != nil || err != io.ErrUnexpectedEOF {
				t.Errorf("%d octets %s: %q, %v", n, name, got, err)
			}
		}
	}
}

func TestRecordsBeyondTheLimitsEndTheStream(t *testing.T) {
	small := RecordLimits{Record: 8, Fragments: 3}
	for _, c := range []struct {
		name   string
		wire   string
		limits RecordLimits
		text   string // empty: the record is fine
	}{
		{"at the limit", "00000003 616263 80000005 6465666768", small, ""},
		{"one octet more", "00000003 616263 80000006 646566676869", small,
			`9 octets by fragment 2, whose mark is "\x80\x00\x00\x06", at most 8 are allowed`},
		{"three fragments", "00000001 61 00000001 62 80000001 63", small, ""},
		{"four fragments", "00000001 61 00000001 62 00000001 63 80000001 64", small, "more than 3 fragments"},
		{"empty fragments without end", strings.Repeat("00000000", 2000), RecordLimits{}, "more than 1024 fragments"},
		{"a fragment of 2 GiB less one octet", "7fffffff", RecordLimits{}, "2147483647 octets by fragment 1"},
		{"another protocol", "47455420 2f20485454502f312e31", RecordLimits{}, `whose mark is "GET "`},
	} {
		t.Run(c.name, func(t *testing.T) {
			reader := NewRecordReader(bytes.NewReader(unhex(t, c.wire)), c.limits)
			b, err := reader.AppendRecord(nil)
			if c.text == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if !errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), c.text) || b != nil {
				t.Errorf("got  %q, %v\nwant %s", b, err, c.text)
			}
			// It is final.
			n, read := reader.Read(make([]byte, 1))
			if next := reader.Next(); next != err || read != err || n != 0 {
				t.Errorf("then %v and %v", next, read)
			}
		})
	}
}

func TestAPeerThatAnnouncesMuchAndSendsLittleGetsLittleMemory(t *testing.T) {
	arrived := 10000
	wire := append(unhex(t, "801e8480"), make([]byte, arrived)...) // 2,000,000 octets announced
	var largest int
	r := NewRecordReader(readerFunc(func(p []byte) (int, error) {
		largest = max(largest, len(p))
		n := copy(p, wire[:min(len(wire), 100)]) // trickling
		if wire = wire[n:]; n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}), RecordLimits{})
	if _, err := r.AppendRecord(nil); err != io.ErrUnexpectedEOF {
		t.Error(err)
	}
	if limit := 2 * arrived; largest > limit {
		t.Errorf("a buffer of %d octets waited, expected at most %d", largest, limit)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestAnErrorOfTheStreamIsFinal(t *testing.T) {
	broken := errors.New("broken")
	r := NewRecordReader(io.MultiReader(bytes.NewReader(unhex(t, "80000002 61")), iotest.ErrReader(broken)), RecordLimits{})
	if b, err := r.AppendRecord(nil); b != nil || err != broken {
		t.Errorf("%q, %v", b, err)
	}
	if err := r.Next(); err != broken {
		t.Errorf("then %v", err)
	}
	// The rest of a record is skipped as far as it arrives.
	r = NewRecordReader(io.MultiReader(bytes.NewReader(unhex(t, "80000002 61")), iotest.ErrReader(broken)), RecordLimits{})
	if err := r.Next(); err != nil {
		t.Error(err)
	}
	if err := r.Next(); err != broken {
		t.Errorf("skipping: %v", err)
	}
}

func TestARecordFillsTheMemoryThatWasLent(t *testing.T) {
	lent := make([]byte, 0, 8)
	r := NewRecordReader(bytes.NewReader(unhex(t, "00000003 616263 80000005 6465666768")), RecordLimits{})
	b, err := r.AppendRecord(lent)
	if err != nil || string(b) != "abcdefgh" || &b[0] != &lent[:1][0] {
		t.Errorf("%q, %v", b, err)
	}
}

func TestRecordsAreWrittenInFragments(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789"), 100)
	for _, c := range []struct {
		name        string
		maxFragment int
		pieces      []string
		want        string
	}{
		{"one piece", 0, []string{"abc"}, "\x80\x00\x00\x03abc"},
		{"several, some empty", 0, []string{"", "abc", "", "de", ""}, "\x80\x00\x00\x05abcde"},
		{"nothing", 0, nil, "\x80\x00\x00\x00"},
		{"nothing of something", 0, []string{""}, "\x80\x00\x00\x00"},
		{"a large one between small ones", 0, []string{"abc", string(big), "\x00"}, "\x80\x00\x03\xecabc" + string(big) + "\x00"},
		{"in fragments", 3, []string{"ab", "cdefg"}, "\x00\x00\x00\x03abc\x00\x00\x00\x03def\x80\x00\x00\x01g"},
		{"in fragments that fit", 3, []string{"abcdef"}, "\x00\x00\x00\x03abc\x80\x00\x00\x03def"},
		{"a large one in fragments", 600, []string{"abc", string(big)}, "\x00\x00\x02\x58abc" + string(big[:597]) + "\x80\x00\x01\x93" + string(big[597:])},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got bytes.Buffer
			w := NewRecordWriter(&got, c.maxFragment)
			pieces := make(net.Buffers, len(c.pieces))
			for i, p := range c.pieces {
				pieces[i] = []byte(p)
			}
			for range 2 {
				got.Reset()
				if err := w.WriteRecord(pieces...); err != nil || got.String() != c.want {
					t.Errorf("got  %q, %v\nwant %q", got.String(), err, c.want)
				}
			}
			for i, p := range c.pieces {
				if string(pieces[i]) != p {
					t.Errorf("piece %d is now %q", i, pieces[i])
				}
			}
		})
	}
}

// writeLog records each write.
type writeLog struct {
	writes [][]byte
	err    error
}

func (l *writeLog) Write(p []byte) (int, error) {
	l.writes = append(l.writes, p)
	if l.err != nil {
		return 0, l.err
	}
	return len(p), nil
}

func TestLargePiecesAreNotCopiedAndSmallOnesShareAWrite(t *testing.T) {
	var log writeLog
	large := make([]byte, 4096)
	if err := NewRecordWriter(&log, 0).WriteRecord([]byte("header"), []byte("results"), large, []byte("pad")); err != nil {
		t.Fatal(err)
	}
	if len(log.writes) != 3 || len(log.writes[0]) != 4+6+7 || &log.writes[1][0] != &large[0] || len(log.writes[2]) != 3 {
		t.Errorf("%d writes", len(log.writes))
	}
}

// The OnStep function is called for each part of a long record.
func TestAWriterTellsOfEachStep(t *testing.T) {
	for _, c := range []struct{ size, steps int }{
		{0, 0}, {stepLen - 4, 0}, {stepLen - 3, 1}, {2*stepLen - 4, 1}, {10*stepLen + 1, 10},
	} {
		var out bytes.Buffer
		w := NewRecordWriter(&out, 0)
		var at []int
		w.OnStep(func() { at = append(at, out.Len()) })
		record := bytes.Repeat([]byte("abcdefg"), c.size/7+1)[:c.size]
		cut := c.size / 3
		if err := w.WriteRecord(record[:cut], record[cut:cut+min(10, c.size-cut)], record[cut+min(10, c.size-cut):]); err != nil {
			t.Fatal(err)
		}
		if len(at) != c.steps {
			t.Errorf("%d octets: %d notices, want %d", c.size, len(at), c.steps)
		}
		for i, n := range at {
			if n != (i+1)*stepLen {
				t.Errorf("%d octets: step %d was reported after %d octets", c.size, i, n)
			}
		}
		if got, err := readAll(&out, RecordLimits{}); err != io.EOF || len(got) != 1 || got[0] != string(record) {
			t.Errorf("%d octets came back changed: %v", c.size, err)
		}
	}
}

func TestAWriterThatFailedWritesNoMore(t *testing.T) {
	log := writeLog{err: io.ErrClosedPipe}
	w := NewRecordWriter(&log, 0)
	for range 2 {
		if err := w.WriteRecord([]byte("abc")); err != io.ErrClosedPipe {
			t.Error(err)
		}
	}
	if len(log.writes) != 1 {
		t.Errorf("%d writes", len(log.writes))
	}
	if kept := w.vec[:1][0]; kept != nil {
		t.Errorf("it keeps %q", kept)
	}
}

func TestRecordsCrossATCPConnection(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	out, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()

	payload := bytes.Repeat([]byte("payload "), 1<<17) // 1 MiB
	want := slices.Concat([]byte("header"), payload, []byte("end"))
	done := make(chan error, 1)
	go func() {
		w := NewRecordWriter(out, 100_000)
		for range 3 {
			if err := w.WriteRecord([]byte("header"), payload, []byte("end")); err != nil {
				done <- err
				return
			}
		}
		done <- out.Close()
	}()
	records, err := readAll(bufio.NewReader(in), RecordLimits{})
	if err != io.EOF || len(records) != 3 {
		t.Errorf("%d records, %v", len(records), err)
	}
	for i, r := range records {
		if r != string(want) {
			t.Errorf("record %d is another", i)
		}
	}
	if err := nettest.Await(t, done); err != nil {
		t.Error(err)
	}
}
