package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
)

// record makes a capture in memory and closes it when do has returned.
func record(t *testing.T, do func(w *Writer)) []packet {
	t.Helper()
	var file bytes.Buffer
	w, err := NewWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	do(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return readBack(t, file.Bytes())
}

func say(t *testing.T, c net.Conn, what string) {
	t.Helper()
	if n, err := c.Write([]byte(what)); n != len(what) || err != nil {
		t.Errorf("wrote %d of %d octets: %v", n, len(what), err)
	}
}

func hear(t *testing.T, c net.Conn, what string) {
	t.Helper()
	got := make([]byte, len(what))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != what {
		t.Errorf("read %q, %v, want %q", got, err, what)
	}
}

func TestConversationIsRecordedWithItsAddresses(t *testing.T) {
	type ends struct{ here, there net.Conn }
	dial := func(network string) func() ends {
		return func() ends { a, b := nettest.TCPPair(t, network); return ends{a, b} }
	}
	cases := map[string]func() ends{
		"memory":   func() ends { a, b := iwarptest.Pipe(); return ends{a, b} },
		"net.Pipe": func() ends { a, b := net.Pipe(); return ends{a, b} },
	}
	for _, network := range nettest.Networks() {
		cases[network] = dial(network)
	}
	for name, open := range cases {
		e := open()
		packets := record(t, func(w *Writer) {
			c := Conn(e.here, w)
			var peer sync.WaitGroup
			peer.Go(func() {
				hear(t, e.there, "request")
				say(t, e.there, "reply")
				hear(t, e.there, "more")
				e.there.Close()
			})
			say(t, c, "request")
			hear(t, c, "reply")
			say(t, c, "more")
			if _, err := c.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("%s: %v at the end", name, err)
			}
			peer.Wait()
			c.Close()
		})
		talks := assemble(t, packets)
		if len(talks) != 1 {
			t.Fatalf("%s: %d connections", name, len(talks))
		}
		k := talks[0]
		if got := string(k.sent[k.client]); got != "requestmore" {
			t.Errorf("%s: client sent %q", name, got)
		}
		if got := string(k.sent[k.server]); got != "reply" {
			t.Errorf("%s: server sent %q", name, got)
		}
		if want := []string{">S", "<SA", ">A", "<FA", ">A", ">FA", "<A"}; !slices.Equal(k.flags, want) {
			t.Errorf("%s: %q, want %q", name, k.flags, want)
		}
		here, there := netip.MustParseAddrPort("192.0.2.1:49153"), netip.MustParseAddrPort("192.0.2.2:49153")
		if tcp, ok := e.here.LocalAddr().(*net.TCPAddr); ok {
			here, there = tcp.AddrPort(), e.there.LocalAddr().(*net.TCPAddr).AddrPort()
		}
		if k.client != here || k.server != there {
			t.Errorf("%s: from %v to %v, want from %v to %v", name, k.client, k.server, here, there)
		}
	}
}

func TestMappedAddressesAreThoseOfIPv4(t *testing.T) {
	mapped := &net.TCPAddr{IP: net.ParseIP("::ffff:127.0.0.1"), Port: 7}
	zoned := &net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 9, Zone: "lo"}
	for _, c := range []struct {
		here, there net.Addr
		a, b        string
	}{
		{mapped, mapped, "127.0.0.1:7", "127.0.0.1:7"},
		{zoned, zoned, "[fe80::1]:9", "[fe80::1]:9"},
		{mapped, zoned, "192.0.2.1:49157", "192.0.2.2:49157"},
		{mapped, (*net.TCPAddr)(nil), "192.0.2.1:49157", "192.0.2.2:49157"},
		{nil, nil, "192.0.2.1:49157", "192.0.2.2:49157"},
	} {
		if a, b := addresses(c.here, c.there, 5); a.String() != c.a || b.String() != c.b {
			t.Errorf("%v and %v: %v and %v, want %s and %s", c.here, c.there, a, b, c.a, c.b)
		}
	}
}

func TestWhoSpeaksFirstIsTheClient(t *testing.T) {
	a, b := iwarptest.Pipe()
	talks := assemble(t, record(t, func(w *Writer) {
		c := Conn(a, w)
		say(t, b, "request")
		hear(t, c, "request")
		say(t, c, "reply")
	}))
	k := talks[0]
	if k.client.Addr() != netip.MustParseAddr("192.0.2.2") || string(k.sent[k.client]) != "request" || string(k.sent[k.server]) != "reply" {
		t.Errorf("client %v sent %q, server sent %q", k.client, k.sent[k.client], k.sent[k.server])
	}
}

func TestLargeWritesAreSeveralSegments(t *testing.T) {
	const size = 3*ackEvery + 12345
	sent := bytes.Repeat([]byte("0123456789abcdef!"), size/17+1)[:size]
	a, b := iwarptest.BufferedPipe(size)
	packets := record(t, func(w *Writer) { say(t, Conn(a, w), string(sent)) })
	k := assemble(t, packets)[0]
	if !bytes.Equal(k.sent[k.client], sent) || b.Unread() != size {
		t.Error("the capture holds other octets than were sent")
	}
	unacknowledged, acknowledgements := 0, 0
	for i, p := range packets[:3] { // the handshake
		if segment, scale := optionsOf(p); i < 2 && (segment != maxSegment || scale != windowScale) {
			t.Errorf("packet %d: segment size %d, window scale %d", i, segment, scale)
		}
	}
	for _, p := range packets[3:] {
		if len(p.payload) > maxSegment {
			t.Errorf("segment of %d octets", len(p.payload))
		}
		if unacknowledged += len(p.payload); p.from == k.server {
			unacknowledged = 0
			acknowledgements++
		}
		if unacknowledged > ackEvery+maxSegment {
			t.Fatalf("%d octets unacknowledged", unacknowledged)
		}
	}
	if acknowledgements > size/ackEvery {
		t.Errorf("%d acknowledgements of %d octets", acknowledgements, size)
	}
}

// optionsOf are the segment size and the window scale that p announces.
func optionsOf(p packet) (segment, scale int) {
	for _, o := range p.options {
		switch o.OptionType {
		case layers.TCPOptionKindMSS:
			segment = int(o.OptionData[0])<<8 | int(o.OptionData[1])
		case layers.TCPOptionKindWindowScale:
			scale = int(o.OptionData[0])
		}
	}
	return segment, scale
}

func TestOctetsNotWrittenGiveTheirNumbersToTheNext(t *testing.T) {
	a, b := iwarptest.BufferedPipe(4)
	packets := record(t, func(w *Writer) {
		c := Conn(a, w)
		c.SetWriteDeadline(time.Unix(0, 1))
		if n, err := c.Write([]byte("abcdef")); n != 0 || err == nil {
			t.Fatalf("%d octets, %v", n, err)
		}
		c.SetWriteDeadline(time.Time{})
		say(t, c, "ABC")
		hear(t, b, "ABC")
	})
	first, second := packets[3], packets[4]
	if first.seq != second.seq || string(first.payload) != "abcdef" || string(second.payload) != "ABC" {
		t.Errorf("%d %q, then %d %q", first.seq, first.payload, second.seq, second.payload)
	}
}

func TestConnectionsBeginAtOtherSequenceNumbers(t *testing.T) {
	seen := map[uint32]bool{}
	for _, p := range record(t, func(w *Writer) {
		for range 3 {
			a, _ := iwarptest.Pipe()
			say(t, Conn(a, w), "x")
		}
	}) {
		if p.flags[0] == 'S' {
			seen[p.seq] = true
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d first sequence numbers for 6 directions", len(seen))
	}
}

func TestManyConnectionsShareAWriter(t *testing.T) {
	const conns, rounds = 4, 50
	talks := assemble(t, record(t, func(w *Writer) {
		var all sync.WaitGroup
		for i := range conns {
			a, b := iwarptest.Pipe()
			c := Conn(a, w)
			say(t, c, fmt.Sprintf("%04d", i)) // opens it
			for _, f := range []func(){
				func() {
					for range rounds {
						say(t, c, "ping")
					}
				},
				func() {
					for range rounds {
						say(t, b, "pong")
					}
				},
				func() { hear(t, c, strings.Repeat("pong", rounds)) },
				func() { hear(t, b, fmt.Sprintf("%04d", i)+strings.Repeat("ping", rounds)) },
			} {
				all.Go(f)
			}
		}
		all.Wait()
	}))
	if len(talks) != conns {
		t.Fatalf("%d connections", len(talks))
	}
	for i, k := range talks {
		if string(k.sent[k.client]) != fmt.Sprintf("%04d", i)+strings.Repeat("ping", rounds) || string(k.sent[k.server]) != strings.Repeat("pong", rounds) {
			t.Errorf("connection %d: other octets than were sent", i)
		}
	}
}

// A fullDisk takes so many octets.
type fullDisk struct{ room int }

func (d *fullDisk) Write(p []byte) (int, error) {
	if n := min(d.room, len(p)); n < len(p) {
		d.room = 0
		return n, syscall.ENOSPC
	}
	d.room -= len(p)
	return len(p), nil
}

func TestFaultyFileDisturbsNoConnection(t *testing.T) {
	if _, err := NewWriter(&fullDisk{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("begun on a full disk: %v", err)
	}
	w, err := NewWriter(&fullDisk{room: 10000})
	if err != nil {
		t.Fatal(err)
	}
	a, b := iwarptest.Pipe()
	c := Conn(a, w)
	for range 100 {
		text := strings.Repeat("x", 1000)
		say(t, c, text)
		hear(t, b, text)
		say(t, b, text)
		hear(t, c, text)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("closed: %v", err)
	}
}

func TestConnectionOutlivesItsWriter(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	a, b := iwarptest.Pipe()
	c := Conn(a, w)
	say(t, c, "recorded")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	size := file.Len()
	say(t, c, "not recorded")
	hear(t, b, "recordednot recorded")
	c.Close()
	if file.Len() != size {
		t.Error("recorded after Close")
	}
	if err := w.Close(); err == nil {
		t.Error("closed twice without an error")
	}
}

func TestACaptureByNameIsAFileThatCloseCompletes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file.pcapng")
	w, err := Create(name)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := iwarptest.Pipe()
	say(t, Conn(a, w), "data")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.out.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file was left open: %v", err)
	}
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if k := assemble(t, readBack(t, file))[0]; string(k.sent[k.client]) != "data" {
		t.Errorf("the file has %q", k.sent[k.client])
	}
	if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may use the file: %v, %v", info, err)
	}
	if _, err := Create(filepath.Join(name, "below a file")); err == nil {
		t.Error("a file was created below a file")
	}
}

func TestClosedConnectionIsInTheFileAlready(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := iwarptest.Pipe()
	c := Conn(a, w)
	say(t, c, "data")
	c.Close()
	if k := assemble(t, readBack(t, file.Bytes()))[0]; len(k.flags) != 5 {
		t.Errorf("the file has %q", k.flags)
	}
}
