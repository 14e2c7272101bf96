package ucmatose

import (
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

func TestClientAndServerUnderstandEachOther(t *testing.T) {
	rnic, err := verbs.Open(verbs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer rnic.Close()
	for name, cfg := range map[string]Config{
		"one connection": {Connections: 1, Count: 10, Size: 100},
		"several":        {Connections: 4, Count: 20, Size: 20000},
	} {
		t.Run(name, func(t *testing.T) {
			ln, err := cm.Listen(t.Context(), rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{})
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close() // again does no harm
			served := make(chan error, 1)
			go func() { served <- Server(t.Context(), rnic, ln, cfg, cm.Params{}) }()
			if err := Client(t.Context(), rnic, ln.Addr().String(), cfg, cm.Params{MPA: mpa.Config{PeerToPeer: true}}); err != nil {
				t.Errorf("client: %v", err)
			}
			if err := <-served; err != nil {
				t.Errorf("server: %v", err)
			}
			if err := ln.Close(); err != nil {
				t.Errorf("listener: %v", err)
			}
			if u := rnic.Usage(); u != (verbs.Usage{}) {
				t.Errorf("they left %+v", u)
			}
		})
	}
}
