package gateway

import (
	"testing"
	"testing/synctest"
	"time"
)

// A connection is found once, by its client's address and one of its last calls.
func TestAConnectionIsFoundByItsCalls(t *testing.T) {
	var h history
	h.put("192.0.2.1", 700, []mark{1, 2, 3})
	h.put("192.0.2.2", 701, []mark{1, 2, 3})
	h.put("192.0.2.1", 702, []mark{3, 4})
	h.put("192.0.2.1", 0, []mark{9}) // was never connected
	for _, tt := range []struct {
		host string
		call mark
		want int
	}{
		{"192.0.2.3", 1, 0},   // another client
		{"192.0.2.1", 5, 0},   // another call
		{"192.0.2.1", 0, 0},   // no mark
		{"192.0.2.1", 9, 0},   // no port
		{"192.0.2.1", 3, 702}, // the last one
		{"192.0.2.1", 3, 700},
		{"192.0.2.1", 3, 0}, // no more
		{"192.0.2.2", 2, 701},
	} {
		if got := h.take(tt.host, tt.call); got != tt.want {
			t.Errorf("call %d of %s: port %d, want %d", tt.call, tt.host, got, tt.want)
		}
	}
}

// The number of connections and of calls that are remembered is bounded.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h history
		for i := range 3 * remembered {
			h.put("192.0.2.1", 1+i, []mark{mark(1 + i)})
		}
		if len(h.list) != remembered {
			t.Errorf("%d connections are remembered, want %d", len(h.list), remembered)
		}
		if got := h.take("192.0.2.1", 3*remembered); got != 3*remembered {
			t.Errorf("the last connection is not found: %d", got)
		}
		h.put("192.0.2.2", 7, []mark{7})
		for i := range 3 * remembered {
			h.put("192.0.2.1", 1+i, []mark{mark(1 + i)})
		}
		if got := h.take("192.0.2.2", 7); got != 7 {
			t.Errorf("what one host does has another's connection forgotten: %d", got)
		}
		time.Sleep(rememberFor + time.Second)
		if got := h.take("192.0.2.1", 3*remembered-1); got != 0 || len(h.list) != 0 {
			t.Errorf("port %d after %v, and %d connections", got, rememberFor, len(h.list))
		}
	})
	var s seen
	for i := range 3 * seenCalls {
		s.add(mark(1 + i))
	}
	if s.add(0); len(s.all()) != seenCalls || !s.has(3*seenCalls) || s.has(1) || s.has(0) {
		t.Errorf("%d calls are remembered, want the last %d", len(s.all()), seenCalls)
	}
}

// A mark depends on all of a call but its credential, which RPCSEC_GSS changes in
// retransmissions.
func TestACallIsKnownAgain(t *testing.T) {
	base := call(1, 7, 1, 2, 3)
	again := words(1, 0, 2, 100003, 3, 7, 6, 4, 99, 0, 0, 1, 2, 3)
	if markOf(request(t, base)) != markOf(request(t, again)) {
		t.Error("other credentials make another call of it")
	}
	for name, other := range map[string][]byte{
		"XID": call(2, 7, 1, 2, 3), "procedure": call(1, 8, 1, 2, 3), "arguments": call(1, 7, 1, 2, 4), "length": call(1, 7, 1, 2),
	} {
		if markOf(request(t, base)) == markOf(request(t, other)) {
			t.Errorf("another %s does not make another call of it", name)
		}
	}
	if markOf(request(t, call(1, 0))) != 0 {
		t.Error("NULL has a mark")
	}
}
