package rping

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// The first case is a ping of the original, seen on the wire; the others
// follow its rule: start at 'A' + ping, go to 'z', start again at 'A'.
func TestTextIsThatOfTheOriginal(t *testing.T) {
	all := ""
	for c := 'A'; c <= 'z'; c++ {
		all += string(c)
	}
	for _, tt := range []struct {
		n, size int
		want    string
	}{
		{0, 64, `rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\]^_` + "`abcdefghijklmnopqr\x00"},
		{0, 27, "rdma-ping-0: ABCDEFGHIJKLM\x00"},
		{1, 27, "rdma-ping-1: BCDEFGHIJKLMN\x00"},
		{57, 27, "rdma-ping-57: zABCDEFGHIJK\x00"},
		{58, 27, "rdma-ping-58: ABCDEFGHIJKL\x00"},
		{0, 100, "rdma-ping-0: " + all + all[:28] + "\x00"},
		{math.MaxInt32, MinSize, "rdma-ping-2147483647: \x00"},
	} {
		buf := bytes.Repeat([]byte{0xff}, tt.size)
		Fill(buf, tt.n)
		if string(buf) != tt.want {
			t.Errorf("ping %d of %d octets:\n got %q\nwant %q", tt.n, tt.size, buf, tt.want)
		}
	}
}

func TestTextEndsBeforeTheFirstNUL(t *testing.T) {
	for in, want := range map[string]string{"ab\x00cd\x00": "ab", "\x00": "", "abc": "abc", "": ""} {
		if got := Text([]byte(in)); string(got) != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
	buf := make([]byte, MaxSize)
	Fill(buf, 3)
	if got := Text(buf); len(got) != MaxSize-1 || !strings.HasPrefix(string(got), "rdma-ping-3: D") {
		t.Errorf("the largest ping prints %d octets, want %d", len(got), MaxSize-1)
	}
}
