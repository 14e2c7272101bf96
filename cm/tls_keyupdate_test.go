// A peer that changes its keys (RFC 8446 §4.6.3). crypto/tls answers that and never does it,
// so here is a record layer that can: it takes over after the handshake of crypto/tls, with
// the secrets of the key log.

package cm_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/verbs"
)

// Types of records, and of the one message within that matters here.
const (
	alertRecord     = 21
	handshakeRecord = 22
	dataRecord      = 23
	keyUpdate       = 24
)

// A traffic is the protection of one direction (RFC 8446 §5.2, §7.2).
type traffic struct {
	hash   func() hash.Hash
	size   int // of the key
	secret []byte
	aead   cipher.AEAD
	iv     []byte
	seq    uint64
}

// expand is HKDF-Expand-Label with an empty context (§7.1).
func (k *traffic) expand(label string, size int) ([]byte, error) {
	label = "tls13 " + label
	info := append(binary.BigEndian.AppendUint16(nil, uint16(size)), byte(len(label)))
	return hkdf.Expand(k.hash, k.secret, string(append(append(info, label...), 0)), size)
}

// use begins with a secret.
func (k *traffic) use(secret []byte) error {
	k.secret, k.seq = secret, 0
	key, err := k.expand("key", k.size)
	if err != nil {
		return err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	if k.aead, err = cipher.NewGCM(block); err != nil {
		return err
	}
	k.iv, err = k.expand("iv", k.aead.NonceSize())
	return err
}

// update goes on to the next secret.
func (k *traffic) update() error {
	next, err := k.expand("traffic upd", k.hash().Size())
	if err != nil {
		return err
	}
	return k.use(next)
}

// nonce returns that of the next record.
func (k *traffic) nonce() []byte {
	nonce := make([]byte, len(k.iv))
	binary.BigEndian.PutUint64(nonce[len(nonce)-8:], k.seq)
	for i := range nonce {
		nonce[i] ^= k.iv[i]
	}
	k.seq++
	return nonce
}

// seal returns a record.
func (k *traffic) seal(kind byte, text []byte) []byte {
	size := len(text) + 1 + k.aead.Overhead()
	record := binary.BigEndian.AppendUint16([]byte{dataRecord, 3, 3}, uint16(size))
	return k.aead.Seal(record, k.nonce(), append(bytes.Clone(text), kind), record)
}

// A rekeyer is a connection of TLS 1.3 whose user can change its key.
type rekeyer struct {
	net.Conn
	in      traffic // the reader's
	text    []byte  // the reader's: what was decrypted and not read
	answers chan struct{}

	mu  sync.Mutex
	out traffic
}

// newRekeyer makes the handshake of a client. The server sends no data before it has any, so
// that crypto/tls reads nothing that the rekeyer would miss.
func newRekeyer(nc net.Conn, cfg *tls.Config) (*rekeyer, error) {
	var log bytes.Buffer
	cfg = cfg.Clone()
	cfg.MinVersion, cfg.KeyLogWriter = tls.VersionTLS13, &log
	t := tls.Client(nc, cfg)
	if err := t.Handshake(); err != nil {
		return nil, err
	}
	r := &rekeyer{Conn: nc, answers: make(chan struct{}, 1000)}
	switch suite := t.ConnectionState().CipherSuite; suite {
	case tls.TLS_AES_128_GCM_SHA256:
		r.in = traffic{hash: sha256.New, size: 16}
	case tls.TLS_AES_256_GCM_SHA384:
		r.in = traffic{hash: sha512.New384, size: 32}
	default:
		return nil, fmt.Errorf("%w %s", errSuite, tls.CipherSuiteName(suite))
	}
	r.out = r.in
	return r, errors.Join(r.in.use(secretIn(log.String(), "SERVER")), r.out.use(secretIn(log.String(), "CLIENT")))
}

// errSuite: processors without AES prefer ChaCha20, which the standard library does not export.
var errSuite = errors.New("no AES-GCM but")

// secretIn returns the first secret of a side for data, from a key log.
func secretIn(log, side string) []byte {
	_, line, _ := strings.Cut(log, side+"_TRAFFIC_SECRET_0 ")
	line, _, _ = strings.Cut(line, "\n")
	_, digits, _ := strings.Cut(line, " ")
	secret, _ := hex.DecodeString(digits)
	return secret
}

// change sends a KeyUpdate, and uses the next key from there on. With ask, it asks the peer
// to do the same.
func (r *rekeyer) change(ask byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.Conn.Write(r.out.seal(handshakeRecord, []byte{keyUpdate, 0, 0, 1, ask})); err != nil {
		return err
	}
	return r.out.update()
}

func (r *rekeyer) Write(p []byte) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(p) > 0 && err == nil {
		part := p[:min(len(p), 16<<10)]
		p = p[len(part):]
		_, err = r.Conn.Write(r.out.seal(dataRecord, part))
		n += len(part)
	}
	return n, err
}

func (r *rekeyer) Read(p []byte) (int, error) {
	for len(r.text) == 0 {
		if err := r.readRecord(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

func (r *rekeyer) readRecord() error {
	header := make([]byte, 5)
	if _, err := io.ReadFull(r.Conn, header); err != nil {
		return err
	}
	sealed := make([]byte, binary.BigEndian.Uint16(header[3:]))
	if _, err := io.ReadFull(r.Conn, sealed); err != nil {
		return err
	}
	text, err := r.in.aead.Open(nil, r.in.nonce(), sealed, header)
	if err != nil {
		return err
	}
	kind, text := text[len(text)-1], text[:len(text)-1]
	switch {
	case kind == dataRecord:
		r.text = text
		return nil
	case kind == handshakeRecord && bytes.Equal(text, []byte{keyUpdate, 0, 0, 1, 0}):
		r.answers <- struct{}{}
		return r.in.update()
	case kind == alertRecord && text[1] == 0:
		return io.EOF // close_notify
	}
	return fmt.Errorf("a record of type %d: %x", kind, text)
}

// CloseWrite sends close_notify, and FIN.
func (r *rekeyer) CloseWrite() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.Conn.Write(r.out.seal(alertRecord, []byte{1, 0})); err != nil {
		return err
	}
	return r.Conn.(*net.TCPConn).CloseWrite()
}

// rekeyed connects an end whose keys change, a, to one that uses crypto/tls.
func rekeyed(t *testing.T) (a, b *end, ca *cm.Conn, r *rekeyer) {
	t.Helper()
	client, server := pins(t)
	a, b = newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
	ln := listen(t, b, "tcp4", cm.ListenConfig{TLS: server.mutual(t)})
	done := accepted(t.Context(), ln, func(req *cm.Request) error {
		_, err := req.Accept(t.Context(), b.qp, cm.Params{})
		return err
	})
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if r, err = newRekeyer(nc, client.Client("127.0.0.1", "iwarp")); errors.Is(err, errSuite) {
		t.Skip("this processor's TLS has", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if ca, err = cm.Connect(t.Context(), a.qp, r, cm.Params{}); err != nil {
		t.Fatal(err)
	}
	if err := nettest.Await(t, done); err != nil {
		t.Fatal(err)
	}
	return a, b, ca, r
}

// docs/tls.md, the limit of a key: a KeyUpdate of the peer is answered if it asks for that,
// and the stream goes on.
func TestAPeerMayChangeItsKeys(t *testing.T) {
	nettest.CheckLeaks(t)
	for _, ask := range []byte{0, 1} {
		a, b, ca, r := rekeyed(t)
		const n, changes = 100_001, 20
		for i := range changes {
			for j := range n {
				a.buf[j], b.buf[500_000+j] = byte(i+j), byte(i-j)
			}
			if err := r.change(ask); err != nil {
				t.Fatal(err)
			}
			a.do(t, verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{a.mr.SGE(0, n)}, Remote: b.mr.Remote(0)})
			a.do(t, verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{a.mr.SGE(500_000, n)}, Remote: b.mr.Remote(500_000)})
			if !bytes.Equal(a.buf[:n], b.buf[:n]) || !bytes.Equal(a.buf[500_000:500_000+n], b.buf[500_000:500_000+n]) {
				t.Fatalf("change %d: the octets differ", i)
			}
		}
		if got := len(r.answers); got != changes*int(ask) {
			t.Errorf("asked %v: %d of %d changes were answered", ask, got, changes)
		}
		if err := ca.Shutdown(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if state, err := b.qp.WaitState(t.Context(), verbs.Idle, verbs.Error); err != nil || state != verbs.Idle {
			t.Errorf("the other side is %v, %v", state, b.qp.Err())
		}
	}
}

// Changes of keys without end, and messages that are none, end the stream with a reason.
func TestKeyUpdatesThatAreWrongEndTheStream(t *testing.T) {
	nettest.CheckLeaks(t)
	for _, tt := range []struct {
		what    string
		changes int
		ask     byte
		want    string
	}{
		{"far too many", 64, 0, "too many non-advancing records"},
		{"neither asked for nor not", 1, 7, "error decoding message"},
	} {
		_, b, _, r := rekeyed(t)
		for range tt.changes {
			if r.change(tt.ask) != nil {
				break // the other side has ended it
			}
		}
		if state, err := b.qp.WaitState(t.Context(), verbs.Idle, verbs.Error); err != nil || state != verbs.Error {
			t.Errorf("%s: %v, %v", tt.what, state, err)
		}
		if err := b.qp.Err(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.what, err, tt.want)
		}
	}
}
