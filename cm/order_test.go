package cm_test

import (
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// Requests of one peer are reported in the order of its connections, whichever frame is
// read first. A connection that is silent holds up those after it for 20 ms and no longer,
// and those of other peers not at all.
func TestRequestsOfAPeerAreReportedInTheOrderOfItsConnections(t *testing.T) {
	const one, other = "192.0.2.1", "198.51.100.1"
	type step struct {
		from string        // connects
		asks int           // or the request of this connection arrives
		wait time.Duration // or time passes
	}
	connect := func(from string) step { return step{from: from, asks: -1} }
	asks := func(i int) step { return step{asks: i} }
	wait := func(d time.Duration) step { return step{asks: -1, wait: d} }
	for _, test := range []struct {
		name  string
		steps []step
		want  []int
	}{
		{"the frames in another order", []step{connect(one), connect(one), connect(one), asks(2), asks(1), asks(0)}, []int{0, 1, 2}},
		{"the second is still to come", []step{connect(one), connect(one), connect(one), asks(2), asks(0)}, []int{0}},
		{"the second is silent", []step{connect(one), connect(one), connect(one), asks(2), asks(0), wait(20 * time.Millisecond)}, []int{0, 2}},
		{"the first was silent before", []step{connect(one), wait(20 * time.Millisecond), connect(one), asks(1)}, []int{1}},
		{"the first was silent for half of that", []step{connect(one), wait(10 * time.Millisecond), connect(one), asks(1)}, nil},
		{"another peer's", []step{connect(one), connect(other), asks(1)}, []int{1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pipes := newPipes()
				ln := newListener(t, newEnd(t, verbs.QPConfig{}), pipes, cm.ListenConfig{})
				defer ln.Close()
				reported := make(chan int, 10)
				go func() {
					for {
						r, err := ln.Accept(t.Context())
						if err != nil {
							return
						}
						reported <- int(r.PrivateData()[0])
						go func() { _ = r.Reject(nil) }() // nobody reads it
					}
				}()
				var conns []*iwarptest.Conn
				for _, s := range test.steps {
					switch {
					case s.from != "":
						nc := pipes.dialFrom(s.from)
						defer nc.Close()
						conns = append(conns, nc)
					case s.asks >= 0:
						request(t, conns[s.asks], byte(s.asks))
					default:
						time.Sleep(s.wait)
					}
					synctest.Wait()
				}
				var got []int
				for len(reported) > 0 {
					got = append(got, <-reported)
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("reported are %v, expected %v", got, test.want)
				}
			})
		})
	}
}

// request sends a Request frame with one octet of private data.
func request(t *testing.T, nc net.Conn, data byte) {
	t.Helper()
	frame, err := mpa.AppendFrame(nil, mpa.Frame{Kind: mpa.RequestFrame, Revision: mpa.Revision1, CRC: true, PrivateData: []byte{data}})
	if err == nil {
		_, err = nc.Write(frame)
	}
	if err != nil {
		t.Fatal(err)
	}
}
