package rdmap

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// FuzzStream feeds any segments to a stream with a Read and an atomic outstanding. Only
// memory that is exposed is read or changed. Each request of this side completes at most
// once, the peer's never exceed IRD, and every error has a Terminate message.
//
// The input is segments, each behind its length in one octet.
func FuzzStream(f *testing.F) {
	join := func(segments ...[]byte) (all []byte) {
		for _, s := range segments {
			all = append(append(all, byte(len(s))), s...)
		}
		return all
	}
	f.Add(join(whole(OpSend, 1, octets(5)), whole(OpImmediate, 2, octets(8)), invalidating(OpSendInvalidate, 3)))
	f.Add(join(tagged(OpWrite, 0x11, 0x100, false, octets(5)), tagged(OpWrite, 0x11, 0x105, true, octets(3))))
	f.Add(join(tagged(OpReadResponse, 0x11, 0x100, false, octets(5)), tagged(OpReadResponse, 0x11, 0x105, true, octets(3)), atomicResponse(1, 2, 3)))
	f.Add(join(asks(1, 8), adds(2, 1), asks(3, 0), adds(4, 2), asks(5, 1)))
	f.Add(join(tagged(OpReadResponse, 0x11, 0xf8, false, nil), tagged(OpReadResponse, 0x11, 0xf8, true, octets(16))))
	f.Add(join(whole(OpTerminate, 1, []byte{0x11, 1, 0xc0, 0, 0, 20})))
	f.Fuzz(func(t *testing.T, input []byte) {
		var segments [][]byte
		for len(input) > 1 {
			n := min(int(input[0]), len(input)-1)
			segments = append(segments, input[1:1+n])
			input = input[1+n:]
		}
		r := newRig(t)
		all := bytes.Repeat([]byte{'.'}, 64)
		r.ulp.memory[0x11] = &region{base: 0x100, data: all[16:24:24]} // sink, target and source
		r.ulp.memory[0x33] = &region{base: 8, data: all[16:24:24]}
		r.region(0x44, 16, 8, 0)
		r.region(0xdead, 0, 8, 0)
		r.receive(8, 8, 8)
		r.send(readOf(8), fetchAdd())
		r.sent()
		r.ulp.told()

		err := r.feed(segments...)
		if outside := append(all[:16:16], all[24:]...); bytes.Trim(outside, ".") != nil {
			t.Errorf("memory outside of the region was written: %q", all)
		}
		counts := make(map[string]int)
		for _, line := range r.ulp.told() {
			what, _, _ := strings.Cut(line, " ")
			counts[what]++
		}
		if counts["responded"] > 2 || counts["delivered"] > 3 || counts["memory"] > 0 || r.requests.len() > 4 {
			t.Errorf("told %v, %d requests wait", counts, r.requests.len())
		}
		if err == errPause {
			return
		}
		var said *TerminateError
		if errors.As(err, &said) && said.Remote {
			return // never answered
		}
		r.Terminate(err)
		r.Kick()
		if m := r.terminated(); !Defined(m.Layer, m.EType, m.Code) {
			t.Errorf("Terminate says %X/%X/%02X, which is not defined: %v", m.Layer, m.EType, m.Code, err)
		}
	})
}
