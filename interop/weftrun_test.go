package main

import (
	"strings"
	"testing"

	"github.com/weft-rdma/weft/interop/internal/verdict"
	"github.com/weft-rdma/weft/interop/internal/wire"
)

func TestPairsAreComplete(t *testing.T) {
	names := map[string]bool{}
	for _, p := range pairs {
		if names[p.name] || strings.ContainsAny(p.name, " /") {
			t.Errorf("%q is there twice, or no name for a file", p.name)
		}
		names[p.name] = true
		if p.pkg == "" || p.connections == 0 || p.messages == 0 || len(p.heard[0]) == 0 || len(p.heard[1]) == 0 && !p.endless && p.name != "ib_read_lat" {
			t.Errorf("%s is not complete", p.name)
		}
		for _, command := range []string{p.server, p.client} {
			if !strings.Contains(command, "-p {port}") {
				t.Errorf("%q has no port of its own", command)
			}
		}
		if !strings.Contains(p.client, "{server}") {
			t.Errorf("%q does not know its server", p.client)
		}
	}
}

func TestPrivateDataThatIsNotTheProgramsOwnIsAFault(t *testing.T) {
	frame := func(data string) *wire.Startup { return &wire.Startup{PrivateData: []byte(data)} }
	for _, c := range []struct {
		request, reply string
		initiator      bool // is at fault
		responder      bool
	}{
		{request: "\xc0\x01\xc0\x01own", reply: "\xc0\x01\xc0\x01"},
		{request: "\xc0\x01\xc0\x01own\xffweft", reply: "own", initiator: true},
		{request: "own", reply: "\xc0\x01\xc0\x01weft", responder: true},
	} {
		v := verdict.Verdict{Conversations: []*wire.Conversation{{Request: frame(c.request), Reply: frame(c.reply)}}}
		if err := plain(v, wire.FromInitiator); (err != nil) != c.initiator {
			t.Errorf("of the initiator %q: %v", c.request, err)
		}
		if err := plain(v, wire.FromResponder); (err != nil) != c.responder {
			t.Errorf("of the responder %q: %v", c.reply, err)
		}
	}
}

func TestWhatIsNotPrintedIsNamed(t *testing.T) {
	if err := contains("it", "one\ntwo\n", []string{"one", "two"}); err != nil {
		t.Error(err)
	}
	if err := contains("it", "one\ntwo\n", []string{"one", "three"}); err == nil || !strings.Contains(err.Error(), "three") || !strings.Contains(err.Error(), "two") {
		t.Errorf("%v, expected both texts in it", err)
	}
}
