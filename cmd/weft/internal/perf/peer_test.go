package perf

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
)

// call opens a connection to a peer that begins with what is said.
func call(t *testing.T, addr, say string) *net.TCPConn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if _, err := io.WriteString(nc, say); err != nil {
		t.Fatal(err)
	}
	return nc.(*net.TCPConn)
}

// helloOf is how a control connection begins.
func helloOf(protocol string, token, connections, room, depth int) string {
	return fmt.Sprintf(`C{"do":"hello","hello":{"protocol":%q,"token":%q,"connections":%d,"room":%d,"depth":%d}}`+"\n",
		protocol, base64.StdEncoding.EncodeToString(make([]byte, token)), connections, room, depth)
}

func TestStrangersAreTurnedAwayAndDriversServedAfterwards(t *testing.T) {
	addr, _ := servePeer(t, nil)
	hello := helloOf(protocol, tokenLen, 1, 9, 1)
	for name, tt := range map[string]struct{ say, want string }{
		"another protocol":      {"GET / HTTP/1.1\r\n\r\n", ""},
		"an MPA initiator":      {"MPA ID Req Frame\x40\x01\x00\x00", ""},
		"an unknown token":      {"J0123456789abcdef", ""},
		"a token cut short":     {"J0123", ""},
		"nothing at all":        {"", ""},
		"a mark alone":          {"C", ""},
		"an endless line":       {"C" + strings.Repeat("x", maxLine+1), ""},
		"another version":       {helloOf("weft-perf 1", tokenLen, 1, 1, 1), "same version"},
		"no hello":              {`C{"do":"stream"}` + "\n", "begin with a hello"},
		"no token":              {helloOf(protocol, 0, 1, 1, 1), "token"},
		"too much memory":       {helloOf(protocol, tokenLen, 1, 1<<31-1, 1), "bytes of memory"},
		"too deep":              {helloOf(protocol, tokenLen, 1, 1, 1000000), "depth"},
		"no connection":         {helloOf(protocol, tokenLen, 0, 1, 1), "connections"},
		"negative connections":  {helloOf(protocol, tokenLen, -1, 1, 1), "connections"},
		"too many connections":  {helloOf(protocol, tokenLen, MaxConnections+1, 1, 1), "connections"},
		"too much for so many":  {helloOf(protocol, tokenLen, 4, SizeLimit(4)+1, 1), "bytes of memory"},
		"too deep for so many":  {helloOf(protocol, tokenLen, 64, 1, DepthLimit(64)+1), "depth"},
		"another hello":         {hello + hello[1:], `unexpected request "hello"`},
		"a run without streams": {hello + `{"do":"run","run":{"kind":"stream","op":"send","size":1,"n":1,"slots":1,"depth":1,"batch":1,"signal":1}}` + "\n", "0 of 1 plain TCP connections"},
	} {
		t.Run(name, func(t *testing.T) {
			nc := call(t, addr, tt.say)
			nc.CloseWrite()
			said := ""
			for lines := bufio.NewScanner(nc); lines.Scan(); {
				var rep reply
				if err := json.Unmarshal(lines.Bytes(), &rep); err != nil {
					t.Errorf("the peer said %q", lines.Text())
				}
				said += rep.Error
			}
			if !strings.Contains(said, tt.want) || tt.want == "" && said != "" {
				t.Errorf("the peer complained %q, want %q", said, tt.want)
			}
		})
	}
	if _, err := Run(t.Context(), quick(addr, Send)); err != nil {
		t.Errorf("a driver after all those: %v", err)
	}
}

// Nobody is given up in this test: a driver that had to wait for one of the
// silent ones would wait forever.
func TestTheSilentKeepNoDriverWaiting(t *testing.T) {
	addr, _ := servePeerWithin(t, nil, limits{open: time.Hour, idle: time.Hour, run: time.Hour})
	for _, say := range []string{"", "", "C", `C{"do":"he`, "J", "J01234"} {
		call(t, addr, say)
	}
	if _, err := Run(t.Context(), quick(addr, Send)); err != nil {
		t.Error(err)
	}
}

func TestOneSilentTooManyEndsTheOldest(t *testing.T) {
	addr, _ := servePeerWithin(t, nil, limits{open: time.Hour, idle: time.Hour, run: time.Hour})
	oldest := call(t, addr, "")
	for range maxOpening {
		call(t, addr, "")
	}
	if n, err := oldest.Read(make([]byte, 1)); err == nil {
		t.Errorf("the peer said %d bytes to somebody silent", n)
	}
}

func TestASilentDriverLosesItsTurn(t *testing.T) {
	for name, within := range map[string]limits{
		"before its hello": {open: time.Millisecond, idle: time.Hour, run: time.Hour},
		"after it":         {open: time.Hour, idle: time.Millisecond, run: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := servePeerWithin(t, nil, within)
			say := "C"
			if within.open > within.idle {
				say = helloOf(protocol, tokenLen, 1, 9, 1)
			}
			_, _ = io.ReadAll(call(t, addr, say)) // returns when the peer closes; by a reset, if it had not read all
		})
	}
}

// A driver whose run the peer is ready for, and who then does nothing, loses
// its turn as well.
func TestASilentRunEndsAtItsLimit(t *testing.T) {
	addr, _ := servePeerWithin(t, nil, limits{open: time.Hour, idle: time.Hour, run: time.Millisecond})
	nc := call(t, addr, helloOf(protocol, tokenLen, 1, 9, 1))
	if _, err := nc.Read(make([]byte, maxLine)); err != nil { // it is its turn: others may join
		t.Fatal(err)
	}
	call(t, addr, "J"+string(make([]byte, tokenLen)))
	io.WriteString(nc, `{"do":"stream"}`+"\n"+`{"do":"run","run":{"kind":"stream","op":"send","size":1,"n":1,"slots":1,"depth":1,"batch":1,"signal":1}}`+"\n")
	said, err := io.ReadAll(nc)
	if err != nil || !strings.Contains(string(said), "not finished within 1ms") {
		t.Errorf("the peer said %q and ended with %v", said, err)
	}
}

// No session has more connections than its hello asked for, and none runs with
// fewer.
func TestASessionHasTheConnectionsOfItsHello(t *testing.T) {
	addr, _ := servePeer(t, nil)
	nc := call(t, addr, helloOf(protocol, tokenLen, 2, 9, 1))
	lines := bufio.NewReader(nc)
	answer := func(req string) string {
		t.Helper()
		if _, err := io.WriteString(nc, req); err != nil {
			t.Fatal(err)
		}
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			var rep reply
			if err := json.Unmarshal([]byte(line), &rep); err != nil {
				t.Fatal(err)
			}
			if !rep.Wait { // for the session before
				return rep.Error
			}
		}
	}
	answer("") // of the hello
	for range 2 {
		call(t, addr, "J"+string(make([]byte, tokenLen)))
		if said := answer(`{"do":"stream"}` + "\n"); said != "" {
			t.Fatalf("the peer complained %q", said)
		}
	}
	if said := answer(`{"do":"stream"}` + "\n"); !strings.Contains(said, `unexpected request "stream"`) {
		t.Errorf("the peer complained %q of a third connection", said)
	}

	nc = call(t, addr, helloOf(protocol, tokenLen, 2, 9, 1))
	lines.Reset(nc)
	answer("")
	call(t, addr, "J"+string(make([]byte, tokenLen)))
	answer(`{"do":"stream"}` + "\n")
	said := answer(`{"do":"run","run":{"kind":"echo","op":"send","size":1,"n":1,"slots":1,"depth":1,"batch":1,"signal":1}}` + "\n")
	if !strings.Contains(said, "1 of 2 plain TCP connections") {
		t.Errorf("the peer complained %q of a run with one of two connections", said)
	}
}

// The same of RDMA connections, for each setting of the CRC by itself.
func TestASessionHasTheRDMAConnectionsOfItsHello(t *testing.T) {
	s := session{cfg: &PeerConfig{limits: limits{open: time.Hour, run: time.Hour}}, hello: hello{Connections: 2, Room: 1, Depth: 1}}
	s.rdma = map[bool][]*endpoint{true: {nil, nil}, false: {nil}}
	if _, err := s.obey(t.Context(), &request{Do: doConnect, CRC: true, Remote: new(remote)}); err == nil || !strings.Contains(err.Error(), `unexpected request "connect"`) {
		t.Errorf("a third connection: %v", err)
	}
	if _, _, err := s.part(t.Context(), &run{Kind: bandwidth, Op: Write, Size: 1, N: 1, Slots: 1, Depth: 1, Batch: 1, Signal: 1}); err == nil || !strings.Contains(err.Error(), "1 of 2 RDMA connections") {
		t.Errorf("a run with one of two connections: %v", err)
	}
}

// Connections that a session has not asked for are turned away, all but the
// first, and keep nobody waiting.
func TestConnectionsThatNobodyAskedForAreTurnedAway(t *testing.T) {
	addr, _ := servePeerWithin(t, nil, limits{open: time.Hour, idle: time.Hour, run: time.Hour})
	nc := call(t, addr, helloOf(protocol, tokenLen, 2, 9, 1))
	if _, err := bufio.NewReader(nc).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 3)
	for range cap(ended) {
		joined := call(t, addr, "J"+string(make([]byte, tokenLen)))
		go func() {
			_, err := joined.Read(make([]byte, 1))
			ended <- err
		}()
	}
	for range cap(ended) - 1 {
		if err := nettest.Await(t, ended); err == nil {
			t.Error("the peer said something")
		}
	}
}

func TestDriversTakeTurns(t *testing.T) {
	addr, _ := servePeer(t, nil)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := Run(t.Context(), quick(addr, Write)); err != nil {
				t.Error(err)
			}
		})
	}
	nettest.AwaitGroup(t, &all)
}

func TestADriverTooManyIsToldSo(t *testing.T) {
	addr, _ := servePeerWithin(t, nil, limits{open: time.Hour, idle: time.Hour, run: time.Hour})
	hello := helloOf(protocol, tokenLen, 1, 9, 1)
	for range 1 + maxWaiting { // one has the turn
		if _, err := call(t, addr, hello).Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	said, err := io.ReadAll(call(t, addr, hello))
	if err != nil || !strings.Contains(string(said), "try again later") {
		t.Errorf("the peer said %q and ended with %v", said, err)
	}
}
