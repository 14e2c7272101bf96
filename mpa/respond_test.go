// The Responder against a scripted peer (RFC 5044 §7.1.2, RFC 6581 §9).

package mpa

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// awaits has a Request of the given octets answered by Await.
func awaits(t *testing.T, nc net.Conn, p peer, cfg Config, hex string) *Request {
	t.Helper()
	go p.sendsHex(hex)
	r, err := Await(t.Context(), nc, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const p2pRequest = reqHex + "50 02 0007 c005 c003 616263" // any RTR, IRD 5, ORD 3, "abc"

// Claims: MPA-7.1.1-1 MPA-7.1.1-8 MPA-7.1.2-2 MPA-7.1.2-3 MPA-7.1.2-7 MPA-7.1.1-7 MPA-7.1.1-9 MPA-7.1.1-5 MPA-7.1.2-12
// Claims: MPA-C.2.4-1 ME-6-3 ME-6-7 ME-6-9 ME-9.1-3 ME-9.1-6 ME-9.1-7 ME-9.1-8 ME-9.1-15 ME-9.1-17 ME-9.2-4 ME-9.2-5 ME-9.2-8 ME-9.2-12 ME-9.2-13
// Claims: ME-10-1 ME-10-2
func TestTheResponderRepliesInKind(t *testing.T) {
	for _, c := range []struct {
		name     string
		cfg      Config
		req, rep string
	}{
		{"revision 1", Config{}, "40 01 0002 6869", "40 01 0002 4f4b"},
		{"revision 1, R and all reserved bits set", Config{}, "7f 01 0000", "40 01 0002 4f4b"},
		{"revision 1 without CRC, which we want", Config{}, "00 01 0000", "40 01 0002 4f4b"},
		{"revision 1 without CRC", Config{NoCRC: true}, "00 01 0000", "00 01 0002 4f4b"},
		{"revision 1 with CRC, which we do not want", Config{NoCRC: true}, "40 01 0000", "40 01 0002 4f4b"},
		{"revision 1, Markers", Config{Markers: true}, "c0 01 0000", "c0 01 0002 4f4b"},
		{"revision 1 to the RFC 5044 profile", Config{Profile: ProfileRFC5044}, "40 01 0000", "40 01 0002 4f4b"},
		{"revision 2, unenhanced", Config{}, "40 02 0000", "40 02 0002 4f4b"},
		{"revision 2, siw's flag 0x08", Config{IRD: 16, ORD: 16}, "58 02 0004 0005 0003", "50 02 0006 0010 0005 4f4b"},
		{"client-server", Config{IRD: 16, ORD: 16}, "50 02 0004 0005 0003", "50 02 0006 0010 0005 4f4b"},
		{"client-server, B, C and D set", Config{IRD: 16, ORD: 16}, "50 02 0004 4005 c003", "50 02 0006 0010 0005 4f4b"},
		{"peer-to-peer, Write", Config{IRD: 16, ORD: 16, RTR: RTRWrite}, "50 02 0004 8005 c003", "50 02 0006 8010 8005 4f4b"},
		{"peer-to-peer, nothing in common", Config{IRD: 16, ORD: 16, RTR: RTRSend}, "50 02 0004 8005 c003", "50 02 0006 c010 0005 4f4b"},
		{"peer-to-peer, a Read without ORD", Config{RTR: RTRRead}, "50 02 0004 8005 4000", "50 02 0006 8001 4000 4f4b"},
		{"IRD too small and bound to grow", Config{IRD: 1, MaxIRD: 2}, "50 02 0004 0000 0003", "50 02 0006 0002 0000 4f4b"},
		{"ORD not negotiated", Config{IRD: 1, ORD: 7}, "50 02 0004 0005 3fff", "50 02 0006 3fff 0005 4f4b"},
		{"IRD not negotiated", Config{IRD: 1, ORD: 7}, "50 02 0004 3fff 0001", "50 02 0006 0001 3fff 4f4b"},
		{"RDMA Consortium to the permissive", Config{Profile: ProfilePermissive, NoCRC: true}, "c0 00 0000", "c0 00 0002 4f4b"},
		{"RDMA Consortium to its like", Config{Profile: ProfileRDMAC}, "c0 00 0000", "c0 00 0002 4f4b"},
		{"permissive to RDMA Consortium", Config{Profile: ProfileRDMAC}, "40 01 0000", "c0 00 0002 4f4b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nc, p := pipe(t)
				r := awaits(t, nc, p, c.cfg, reqHex+c.req)
				go func() {
					time.Sleep(time.Second)
					if conn, err := r.Accept(t.Context(), c.cfg, []byte("OK")); err != nil || !conn.Fenced() {
						t.Error(err)
					}
				}()
				start := time.Now()
				p.gets(repHex + c.rep)
				if d := time.Since(start); d < time.Second {
					t.Errorf("replied after %v, before the ULP decided", d)
				}
				p.seesSilence() // RFC 5044 §7.1.2 rule 4
			})
		})
	}
}

// Claims: MPA-7.1.1-2 MPA-7.1.1-11 MPA-7.1.1-14 MPA-7.1.2-4 MPA-7.1.2-3 MPA-7.1.2-13 MPA-7.1.2-18 MPA-8-4 ME-6-9 ME-10-4
func TestTheResponderClosesOnAMalformedRequestWithoutAWord(t *testing.T) {
	type attempt struct {
		cfg Config
		b   []byte
	}
	bad := map[string]attempt{
		"enhanced to the RFC 5044 profile":         {Config{Profile: ProfileRFC5044}, unhex(t, reqHex+"50 02 0004 0005 0003")},
		"enhanced to the RDMA Consortium":          {Config{Profile: ProfileRDMAC}, unhex(t, reqHex+"50 02 0004 0005 0003")},
		"revision 0 without Markers":               {Config{Profile: ProfilePermissive}, unhex(t, reqHex+"40 00 0000")},
		"revision 0 without CRC":                   {Config{Profile: ProfileRDMAC}, unhex(t, reqHex+"80 00 0000")},
		"revision 3 to the permissive profile":     {Config{Profile: ProfilePermissive}, unhex(t, reqHex+"40 03 0000")},
		"revision 255 to the RFC 5044 profile":     {Config{Profile: ProfileRFC5044}, unhex(t, reqHex+"40 ff 0000")},
		"a Reply key to the RDMA Consortium":       {Config{Profile: ProfileRDMAC}, unhex(t, repHex+"c0 00 0000")},
		"enhanced without data, RFC 5044 profile":  {Config{Profile: ProfileRFC5044}, unhex(t, reqHex+"50 02 0000")},
		"PD_Length 513 to the RFC 5044 profile":    {Config{Profile: ProfileRFC5044}, unhex(t, reqHex+"40 01 0201")},
		"PD_Length 513 of the RDMA Consortium":     {Config{Profile: ProfileRDMAC}, unhex(t, reqHex+"c0 00 0201")},
		"PD_Length 65535 to the permissive":        {Config{Profile: ProfilePermissive}, unhex(t, reqHex+"c0 00 ffff")},
		"PD_Length 513, enhanced":                  {Config{}, unhex(t, reqHex+"50 02 0201")},
		"a wrong key, of which one octet has come": {Config{}, []byte("X")},
	}
	for name, b := range malformed(t, RequestFrame) {
		bad[name] = attempt{b: b}
	}
	for name, a := range bad {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nc, p := pipe(t)
				start := time.Now()
				go p.sends(a.b)
				if r, err := Await(t.Context(), nc, a.cfg); r != nil || !isStartup(err) {
					t.Error(err)
				}
				if d := time.Since(start); d != 0 {
					t.Errorf("took %v", d)
				}
				synctest.Wait()
				p.seesEnd()
			})
		})
	}
}

// Claims: MPA-C.2.1-1 MPA-7.1.1-11
func TestRevision0IsAnsweredWithRevision1AndTheEnd(t *testing.T) {
	for _, profile := range []Profile{ProfileIETF, ProfileRFC5044} {
		synctest.Test(t, func(t *testing.T) {
			nc, p := pipe(t)
			go func() {
				if r, err := Await(t.Context(), nc, Config{Profile: profile}); r != nil || !isStartup(err) {
					t.Error(err)
				}
			}()
			p.sendsHex(reqHex + "c0 00 0000")
			p.gets(repHex + "60 01 0000")
			p.seesEnd()
		})
	}
}

// Claims: MPA-7.1.2-17 MPA-7.1.2-19
func TestTheResponderWaitsForTheWholeRequestAndNoLonger(t *testing.T) {
	for _, c := range []struct{ set, want time.Duration }{{0, DefaultRequestTimeout}, {5 * time.Second, 5 * time.Second}} {
		for name, drip := range map[string]int{"silent peer": 0, "peer that drips": 1} {
			synctest.Test(t, func(t *testing.T) {
				nc, p := pipe(t)
				start := time.Now()
				go func() {
					for _, o := range unhex(t, p2pRequest)[:20*drip] {
						time.Sleep(900 * time.Millisecond)
						p.sends([]byte{o})
					}
				}()
				_, err := Await(t.Context(), nc, Config{RequestTimeout: c.set})
				if !hasCode(err, CodeClosed) || !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: %v", name, err)
				}
				if d := time.Since(start); d != c.want {
					t.Errorf("%s: after %v, want %v", name, d, c.want)
				}
				time.Sleep(time.Hour)
				p.seesEnd()
			})
		}
	}
}

func TestTheRespondersContextEndsEveryWait(t *testing.T) {
	why := errors.New("going home")
	synctest.Test(t, func(t *testing.T) {
		nc, p := pipe(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		if _, err := Await(ctx, nc, Config{RequestTimeout: -1}); !hasCode(err, CodeClosed) || !errors.Is(err, why) {
			t.Error(err)
		}
		p.seesEnd()
	})
	for _, before := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			nc, p := pipe(t)
			r := awaits(t, nc, p, Config{}, p2pRequest)
			ctx, cancel := context.WithCancelCause(t.Context())
			if before {
				cancel(why)
			} else {
				time.AfterFunc(time.Second, func() { cancel(why) }) // nobody reads the Reply
			}
			if conn, err := r.Accept(ctx, Config{}, nil); conn != nil || !hasCode(err, CodeClosed) || !errors.Is(err, context.Canceled) && !errors.Is(err, why) {
				t.Error(err)
			}
			p.seesEnd()
		})
	}
}

func TestTheResponderReportsAConnectionLost(t *testing.T) {
	whole := unhex(t, p2pRequest)
	for n := range whole {
		synctest.Test(t, func(t *testing.T) {
			nc, p := pipe(t)
			go func() {
				if n > 0 {
					p.sends(whole[:n])
				}
				p.nc.Close()
			}()
			if r, err := Await(t.Context(), nc, Config{}); r != nil || !hasCode(err, CodeClosed) {
				t.Errorf("after %d octets: %v", n, err)
			}
			if _, err := nc.Write([]byte{0}); err != io.ErrClosedPipe {
				t.Errorf("after %d octets the connection is open: %v", n, err)
			}
		})
	}
}
