package main

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/internal/tlsid"
)

// An office makes certificates for a test.
type office struct {
	t  *testing.T
	by *tlsid.Authority
}

func newOffice(t *testing.T) *office {
	t.Helper()
	a, err := tlsid.NewAuthority("test", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return &office{t, a}
}

// encryption is what `weft run --tls` with a certificate of the office for host asks for.
func (o *office) encryption(host string) encryption {
	o.t.Helper()
	pair, err := o.by.Issue([]string{host}, time.Now().Add(time.Hour))
	if err != nil {
		o.t.Fatal(err)
	}
	dir := o.t.TempDir()
	name := func(name string, content []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, content, 0o600); err != nil {
			o.t.Fatal(err)
		}
		return name
	}
	e, err := openTLS(tlsid.Files{Cert: name("cert", pair.Cert), Key: name("key", pair.Key), CA: name("ca", o.by.Cert)}, "")
	if err != nil {
		o.t.Fatal(err)
	}
	return e
}

// ends is the encryption of an engine whose connections are with itself.
func ends(opens, listens encryption) encryption {
	return encryption{identity: opens.identity, name: opens.name, server: listens.server}
}

// use has the engine use TLS for the rest of a test.
func use(t *testing.T, e encryption) {
	options.tls = e
	t.Cleanup(func() { options.tls = encryption{} })
}

// stderrOf returns what f writes to standard error.
func stderrOf(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	was, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(by int) {
		if err := unix.Dup3(by, 2, 0); err != nil {
			t.Fatal(err)
		}
	}
	read := make(chan string)
	go func() {
		b, _ := io.ReadAll(r)
		read <- string(b)
	}()
	replace(int(w.Fd()))
	f()
	replace(was)
	_, _ = w.Close(), unix.Close(was)
	said := <-read
	r.Close()
	return said
}

// TestConnectionsAreRejectedForTLS has the two ends disagree.
func TestConnectionsAreRejectedForTLS(t *testing.T) {
	ours, theirs := newOffice(t), newOffice(t)
	good, plain := ours.encryption("127.0.0.1"), encryption{}
	for _, tt := range []struct {
		what           string
		opens, listens encryption
		event          string // the client's
		says           string
	}{
		{"both with TLS", good, good, "client: connect-response", ""},
		{"neither", plain, plain, "client: connect-response", ""},
		{"a plain client", plain, good, "client: rejected", "the peer uses TLS, and this side does not"},
		{"a plain server", good, plain, "client: rejected", "as one does that uses MPA without TLS"},
		{"a server of another authority", good, theirs.encryption("127.0.0.1"), "client: rejected", "certificate signed by unknown authority"},
		{"a server of another name", good, ours.encryption("192.0.2.1"), "client: rejected", "certificate is valid for 192.0.2.1, not 127.0.0.1"},
		{"a client of another authority", ends(good, plain), theirs.encryption("127.0.0.1"), "client: rejected", "unknown authority"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			d := newDesk(t)
			use(t, ends(tt.opens, tt.listens))
			said := stderrOf(t, func() {
				d.run("channel s", "channel c", "id server s", "bind server 127.0.0.1:0", "listen server 8",
					"id client c", "resolve client server", "event c", "connect client hello")
				if strings.HasSuffix(tt.event, "response") {
					d.run("event s request", "accept request hello")
				}
				if got, _, _ := strings.Cut(d.do("event", []string{"c"}), ","); got != tt.event {
					t.Errorf("%q, expected %q", got, tt.event)
				}
			})
			if !strings.Contains(said, tt.says) || (said == "") != (tt.says == "") {
				t.Errorf("said %q, expected %q", said, tt.says)
			}
		})
	}
}

// run runs commands whose outcome does not matter.
func (d *desk) run(lines ...string) {
	for _, line := range lines {
		f := strings.Fields(line)
		d.do(f[0], f[1:])
	}
}

// A tap is a relay of TCP that keeps what passes.
type tap struct {
	net.Listener
	to netip.AddrPort

	mu     sync.Mutex
	passed []byte
}

func newTap(t *testing.T, to netip.AddrPort) *tap {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	tp := &tap{Listener: ln, to: to}
	go tp.serve()
	return tp
}

func (tp *tap) serve() {
	for {
		from, err := tp.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", tp.to.String())
		if err != nil {
			from.Close()
			return
		}
		go tp.relay(from, to)
		go tp.relay(to, from)
	}
}

func (tp *tap) relay(from, to net.Conn) {
	_, _ = io.Copy(to, io.TeeReader(from, tp))
	to.Close()
}

// Write keeps what passes.
func (tp *tap) Write(b []byte) (int, error) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	tp.passed = append(tp.passed, b...)
	return len(b), nil
}

// has reports whether something has passed.
func (tp *tap) has(what string) bool {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return bytes.Contains(tp.passed, []byte(what))
}

// TestNothingPassesInPlainText connects through a tap. Without TLS it sees all.
func TestNothingPassesInPlainText(t *testing.T) {
	o := newOffice(t)
	for what, e := range map[string]encryption{"plain": {}, "TLS": o.encryption("127.0.0.1")} {
		t.Run(what, func(t *testing.T) {
			d := newDesk(t)
			use(t, e)
			d.run("channel s", "channel c", "id server s", "bind server 127.0.0.1:0", "listen server 8", "id client c")
			tp := newTap(t, d.localOfID("server"))
			a := argument(resolveIP)
			assign(&a.id, uint64(d.ids["client"]))
			put(unsafe.Pointer(&a.dst_addr), addrPort(tp.Addr()))
			must(t, command(d.fds["c"], cmdResolveIP, a))
			d.run("event c", "connect client a-request", "event s request", "accept request a-reply")
			if got := d.do("event", []string{"c"}); got != `client: connect-response, "a-reply"` {
				t.Fatal(got)
			}
			for _, text := range []string{"MPA ID Re", "a-request", "a-reply"} {
				if seen := tp.has(text); seen != (what == "plain") {
					t.Errorf("%q seen: %v", text, seen)
				}
			}
		})
	}
}

// TestQueuePairsOfNumbersAreEncrypted connects without rdma_cm.
func TestQueuePairsOfNumbersAreEncrypted(t *testing.T) {
	o := newOffice(t)
	e := o.encryption("127.0.0.1")
	a, b := twoPairs(t)
	use(t, e)
	a.ready(t, attributes{dest: b.number, sendPSN: 1, recvPSN: 2})
	b.ready(t, attributes{dest: a.number, sendPSN: 2, recvPSN: 1})
	for _, q := range []*queuePair{a, b} {
		q.awaitStream(t)
		eventually(t, "the connection", func() bool { q.mu.Lock(); defer q.mu.Unlock(); return q.conn != nil })
		if q.conn.TLS() == nil {
			t.Errorf("queue pair %#x is not encrypted", q.number)
		}
	}
}

// TestAQueuePairWhosePeerHasNoTLSFails says so.
func TestAQueuePairWhosePeerHasNoTLSFails(t *testing.T) {
	o := newOffice(t)
	e := o.encryption("127.0.0.1")
	a, b := twoPairs(t)
	use(t, ends(e, encryption{}))
	said := stderrOf(t, func() {
		b.ready(t, attributes{dest: a.number, sendPSN: 2, recvPSN: 1})
		a.ready(t, attributes{dest: b.number, sendPSN: 1, recvPSN: 2})
		eventually(t, "the end of asking", func() bool {
			acks := &a.sends.acks
			acks.mu.Lock()
			defer acks.mu.Unlock()
			return acks.missed
		})
	})
	if !strings.Contains(said, "as one does that uses MPA without TLS") {
		t.Errorf("said %q", said)
	}
}
