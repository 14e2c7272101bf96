package cm

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
)

// recordsOf makes records of a type, of these sizes.
func recordsOf(kind byte, sizes ...int) (stream []byte) {
	for _, n := range sizes {
		stream = append(stream, kind, 3, 3)
		stream = binary.BigEndian.AppendUint16(stream, uint16(n))
		stream = append(stream, make([]byte, n)...)
	}
	return stream
}

// Records are counted however they are cut, and a read never goes beyond the end of one.
func TestRecordsAreCountedHoweverTheyArrive(t *testing.T) {
	var stream []byte
	r := rand.New(rand.NewPCG(1, 2))
	const n = 200
	for range n {
		stream = append(stream, recordsOf(applicationData, r.IntN(3000))...)
		stream = append(stream, recordsOf(22, r.IntN(3))...)
	}
	for seed := range uint64(20) {
		a, b := iwarptest.BufferedPipe(len(stream))
		a.ReadSizes(iwarptest.RandomSizes(seed, 5000))
		if _, err := b.Write(stream); err != nil {
			t.Fatal(err)
		}
		b.Close()
		c := newRecordConn(a, 0)
		c.handshakeOver(tls.TLS_AES_128_GCM_SHA256)
		var got []byte
		p := make([]byte, 700)
		for {
			whole := c.hasRecord() && c.in.rest == 0 && c.in.have == 0
			m, err := c.Read(p[:1+r.IntN(len(p))])
			if err == errTruncated {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if whole && m < recordHeader && c.in.have == 0 && c.in.rest == 0 {
				t.Fatalf("a record of %d octets", m)
			}
			got = append(got, p[:m]...)
		}
		if !bytes.Equal(got, stream) || c.in.data != n || c.in.octets != uint64(len(stream)) {
			t.Fatalf("seed %d: %d octets, %d records counted in %d octets", seed, len(got), c.in.data, c.in.octets)
		}
	}
}

func TestKeysOfOtherCiphersHaveNoLimit(t *testing.T) {
	a, b := iwarptest.Pipe()
	go io.Copy(io.Discard, b)
	defer a.Close()
	for suite, want := range map[uint16]uint64{tls.TLS_AES_128_GCM_SHA256: 3, tls.TLS_AES_256_GCM_SHA384: 3, tls.TLS_CHACHA20_POLY1305_SHA256: math.MaxUint64} {
		c := newRecordConn(a, 3)
		c.handshakeOver(suite)
		var err error
		for range 4 {
			_, err = c.Write(recordsOf(applicationData, 10))
		}
		if c.limit != want || (err == ErrKeyLimit) != (want == 3) {
			t.Errorf("suite %#x: limit %d, %v", suite, c.limit, err)
		}
	}
}

// An AES key is near its limit when three quarters of its records are used, in either direction;
// the limit of a ChaCha20 key is never near.
func TestAKeyIsNearItsLimitAfterThreeQuarters(t *testing.T) {
	const limit = 64
	for suite, nears := range map[uint16]bool{tls.TLS_AES_128_GCM_SHA256: true, tls.TLS_AES_256_GCM_SHA384: true, tls.TLS_CHACHA20_POLY1305_SHA256: false} {
		for _, direction := range []string{"in", "out"} {
			a, b := iwarptest.BufferedPipe(1 << 20)
			c := newRecordConn(a, limit)
			c.handshakeOver(suite)
			pass := func(n int) {
				for range n {
					one := recordsOf(applicationData, 1)
					if direction == "out" {
						if _, err := c.Write(one); err != nil {
							t.Fatal(err)
						}
						continue
					}
					if _, err := b.Write(one); err != nil {
						t.Fatal(err)
					}
					if _, err := io.ReadFull(c, one); err != nil {
						t.Fatal(err)
					}
				}
			}
			near := func() bool {
				select {
				case <-c.near:
					return true
				default:
					return false
				}
			}
			pass(limit / 4 * 3)
			if near() {
				t.Errorf("%s, %s: told too early", tls.CipherSuiteName(suite), direction)
			}
			pass(1)
			if near() != nears {
				t.Errorf("%s, %s: told %v after three quarters, want %v", tls.CipherSuiteName(suite), direction, near(), nears)
			}
			pass(2) // it is told once
			a.Close()
			b.Close()
		}
	}
}
