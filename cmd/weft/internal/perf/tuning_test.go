package perf

import (
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/weft-rdma/weft/cm"
)

func TestTheSocketsOfBothEndsHaveTheOptionsAskedFor(t *testing.T) {
	var mu sync.Mutex
	var found []cm.Socket
	look := func(nc net.Conn) net.Conn {
		s, err := cm.SocketOf(nc.(syscall.Conn))
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		found = append(found, s)
		return nc
	}
	addr, _ := servePeer(t, look)
	cfg := quick(addr, Write)
	cfg.CRC, cfg.Wrap = []bool{true}, look
	cfg.Tuning = Tuning{SendBuffer: 81920, ReceiveBuffer: 98304}
	if _, err := Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(found) != 2 {
		t.Errorf("%d connections, expected one with two ends", len(found))
	}
	for _, s := range found {
		if s.SendBuffer != cfg.Tuning.SendBuffer || s.ReceiveBuffer != cfg.Tuning.ReceiveBuffer {
			t.Errorf("%+v, expected %+v", s, cfg.Tuning)
		}
	}
}

func TestOptionsThatASocketCannotHaveEndTheMeasurement(t *testing.T) {
	addr, _ := servePeer(t, nil)
	for _, v := range []struct {
		tuning Tuning
		want   string
	}{
		{Tuning{Congestion: "no-such"}, `congestion control "no-such"`},
		{Tuning{SendBuffer: -1}, "send buffer of -1"},
	} {
		cfg := quick(addr, Write)
		cfg.Tuning = v.tuning
		if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), v.want) {
			t.Errorf("%v, expected %s", err, v.want)
		}
	}
}
