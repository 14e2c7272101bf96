package folder

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

func TestACallThatComesAgainGetsItsFirstReply(t *testing.T) {
	w := serve(t, Config{})
	root := w.root()
	at := func(name string) nfs.DirOpArgs { return nfs.DirOpArgs{Dir: root, Name: name} }
	w.put("file", "")
	w.put("old", "")
	w.put("removed", "")
	must(t, os.Mkdir(w.path("dir"), 0o777))
	guard := nfs.SetattrGuard{Check: true, Ctime: w.attr(w.fh("file")).Ctime}
	for _, tc := range []struct {
		proc nfs.Proc
		args encoder
	}{
		{nfs.ProcSetattr, &nfs.SetattrArgs{Object: w.fh("file"), New: size(1), Guard: guard}},
		{nfs.ProcCreate, &nfs.CreateArgs{Where: at("created"), Mode: nfs.Guarded}},
		{nfs.ProcMkdir, &nfs.MkdirArgs{Where: at("made")}},
		{nfs.ProcSymlink, &nfs.SymlinkArgs{Where: at("link"), Path: "x"}},
		{nfs.ProcMknod, &nfs.MknodArgs{Where: at("fifo"), Type: nfs.TypeFifo}},
		{nfs.ProcRemove, &nfs.DirOpArgs{Dir: root, Name: "removed"}},
		{nfs.ProcRmdir, &nfs.DirOpArgs{Dir: root, Name: "dir"}},
		{nfs.ProcRename, &nfs.RenameArgs{From: at("old"), To: at("new")}},
		{nfs.ProcLink, &nfs.LinkArgs{File: w.fh("file"), Link: at("second")}},
	} {
		w.network, w.remote = "rdma", &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1000}
		w.session = new(int)
		first, err := w.try(tc.proc, tc.args)
		must(t, err)
		if !bytes.Equal(first[24:28], make([]byte, 4)) {
			t.Errorf("%v: status % x", tc.proc, first[24:28])
		}
		xid := w.xid
		// Another connection, over RDMA with another port.
		w.session, w.remote = new(int), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1001}
		again, err := w.send(xid, tc.proc, tc.args)
		must(t, err)
		if !bytes.Equal(first, again) {
			t.Errorf("%v: another reply", tc.proc)
		}
		// The same XID of another client is another call.
		w.remote = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 1001}
		other, err := w.send(xid, tc.proc, tc.args)
		must(t, err)
		if bytes.Equal(other[24:28], make([]byte, 4)) {
			t.Errorf("%v of another client: success", tc.proc)
		}
	}
}

func requestOf(xid uint32, session any, body string) *oncrpc.Request {
	return &oncrpc.Request{Call: oncrpc.Call{XID: xid}, Network: "tcp", Session: session, Message: []byte("xid.call.rpc." + body)}
}

func TestACallThatRunsIsNotBegunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newReplyCache()
		here, there := new(int), new(int)
		run := make(chan struct{})
		ran := 0
		work := func() ([]byte, error) { ran++; <-run; return []byte("reply"), nil }
		results := make(chan string, 2)
		call := func(session any) {
			b, err := c.do(t.Context(), requestOf(1, session, "x"), work)
			results <- fmt.Sprint(string(b), err)
		}
		go call(here)
		synctest.Wait()
		if _, err := c.do(t.Context(), requestOf(1, here, "x"), work); err != oncrpc.ErrNoReply {
			t.Errorf("on the same connection: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.do(ctx, requestOf(1, there, "x"), work); err != oncrpc.ErrNoReply {
			t.Errorf("on a connection that ends: %v", err)
		}
		go call(there)
		synctest.Wait()
		close(run)
		for range 2 {
			if got := <-results; got != "reply<nil>" {
				t.Errorf("got %s", got)
			}
		}
		if ran != 1 {
			t.Errorf("executed %d times", ran)
		}
	})
}

func TestAnXIDThatIsUsedForAnotherCallIsForgotten(t *testing.T) {
	c := newReplyCache()
	n := 0
	count := func() ([]byte, error) { n++; return []byte{byte(n)}, nil }
	for _, tc := range []struct {
		xid  uint32
		body string
		want byte
	}{{1, "a", 1}, {1, "a", 1}, {2, "a", 2}, {1, "b", 3}, {1, "a", 4}, {1, "a", 4}, {2, "a", 2}} {
		if b, err := c.do(t.Context(), requestOf(tc.xid, nil, tc.body), count); err != nil || b[0] != tc.want {
			t.Errorf("%d %s: % x (%v), want %d", tc.xid, tc.body, b, err, tc.want)
		}
	}
	failed := func() ([]byte, error) { return nil, os.ErrInvalid }
	for range 2 {
		if _, err := c.do(t.Context(), requestOf(9, nil, "f"), failed); err != os.ErrInvalid {
			t.Errorf("a call that failed: %v", err)
		}
	}
}

func TestTheCacheOfRepliesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newReplyCache()
		reply := func() ([]byte, error) { return make([]byte, maxReply+1), nil }
		c.do(t.Context(), requestOf(0, nil, "long"), reply)
		if len(c.entries) != 0 {
			t.Error("a long reply is kept")
		}
		short := func() ([]byte, error) { return []byte("reply"), nil }
		for i := range uint32(2 * maxReplies) {
			c.do(t.Context(), requestOf(i, nil, "x"), short)
		}
		if len(c.entries) != maxReplies || c.order.Len() != maxReplies {
			t.Errorf("%d entries, %d in order", len(c.entries), c.order.Len())
		}
		time.Sleep(replyExpiry)
		c.do(t.Context(), requestOf(1, nil, "x"), short)
		if len(c.entries) != 1 || c.order.Len() != 1 || len(c.shares) != 1 {
			t.Errorf("later: %d entries, %d in order, %d shares", len(c.entries), c.order.Len(), len(c.shares))
		}
	})
}

// A host that makes changes without pause, over many connections, does not evict the replies
// to others.
func TestTheCacheOfRepliesIsSharedAmongHosts(t *testing.T) {
	c := newReplyCache()
	from := func(host string, xid uint32) *oncrpc.Request {
		r := requestOf(xid, nil, "x")
		r.Remote = &net.TCPAddr{IP: net.ParseIP(host), Port: 700 + int(xid%50)}
		return r
	}
	ran := make(map[string]int)
	call := func(host string, xid uint32) {
		c.do(t.Context(), from(host, xid), func() ([]byte, error) { ran[host]++; return []byte("reply"), nil })
	}
	quiet := []string{"192.0.2.1", "192.0.2.2", "2001:db8::1"}
	for _, host := range quiet {
		for xid := range uint32(200) {
			call(host, xid)
		}
	}
	for xid := range uint32(5 * maxReplies) {
		call("192.0.2.66", xid)
		// All addresses of an IPv6 network of 64 bits are one share.
		call(fmt.Sprintf("2001:db8:0:66::%x", 1+xid%60000), xid)
	}
	for _, host := range quiet {
		for xid := range uint32(200) {
			call(host, xid)
		}
		if ran[host] != 200 {
			t.Errorf("%s had 200 calls, and %d were executed", host, ran[host])
		}
	}
	sum := 0
	for _, l := range c.shares {
		sum += l.Len()
	}
	if len(c.entries) > maxReplies || sum != len(c.entries) || c.order.Len() != sum {
		t.Errorf("%d entries, %d in order, %d by host", len(c.entries), c.order.Len(), sum)
	}
}

// Users of this machine have one address, and each is a share of its own.
func TestTheCacheOfRepliesIsSharedAmongLocalUsers(t *testing.T) {
	c := newReplyCache()
	ran := make(map[uint32]int)
	call := func(uid, xid uint32) {
		r := requestOf(xid, nil, "x")
		r.Origin = of(uid, uid)
		r.Remote = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(uid)}
		c.do(t.Context(), r, func() ([]byte, error) { ran[uid]++; return []byte("reply"), nil })
	}
	for xid := range uint32(200) {
		call(2000, xid)
	}
	for xid := range uint32(2 * maxReplies) {
		call(2001, xid)
	}
	for xid := range uint32(200) {
		call(2000, xid)
	}
	if ran[2000] != 200 {
		t.Errorf("uid 2000 made 200 calls, and %d were executed", ran[2000])
	}
}

func TestACallThatRunsIsNotPushedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newReplyCache()
		run, done := make(chan struct{}), make(chan struct{})
		ran := 0
		go func() {
			c.do(t.Context(), requestOf(1, nil, "x"), func() ([]byte, error) { ran++; <-run; return []byte("reply"), nil })
			close(done)
		}()
		synctest.Wait()
		for i := range uint32(2 * maxReplies) {
			c.do(t.Context(), requestOf(2+i, nil, "x"), func() ([]byte, error) { return []byte("reply"), nil })
		}
		if _, err := c.do(t.Context(), requestOf(1, nil, "x"), func() ([]byte, error) { ran++; return nil, nil }); err != oncrpc.ErrNoReply {
			t.Errorf("the call again: %v", err)
		}
		close(run)
		<-done
		if ran != 1 || len(c.entries) != maxReplies {
			t.Errorf("executed %d times, %d entries", ran, len(c.entries))
		}
	})
}
