package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/weft-rdma/weft/internal/script"
)

// A desk is a program that uses rdma_cm: what it has, by the names that a script gives.
type desk struct {
	t        *testing.T
	bed      *bed
	channels map[string]*channel
	fds      map[string]int
	ids      map[string]uint32
	pairs    map[string]*queuePair
}

// The commands, as the kernel numbers them (rdma/rdma_user_cm.h).
const (
	cmdCreate, cmdDestroy, cmdBindIP, cmdResolveIP, cmdResolveRoute = 0, 1, 2, 3, 4
	cmdConnect, cmdListen, cmdAccept, cmdReject, cmdDisconnect      = 6, 7, 8, 9, 10
	cmdGetEvent, cmdMigrate                                         = 12, 18
)

var eventNames = map[uint32]string{
	addrResolved: "addr-resolved", addrError: "addr-error", routeResolved: "route-resolved", connectRequest: "connect-request",
	connectResponse: "connect-response", connectError: "connect-error", unreachable: "unreachable", rejected: "rejected",
	established: "established", disconnected: "disconnected",
}

func newDesk(t *testing.T) *desk {
	anEngine(t, false)
	return &desk{t: t, bed: newBed(t), channels: map[string]*channel{}, fds: map[string]int{}, ids: map[string]uint32{}, pairs: map[string]*queuePair{}}
}

// command writes a command as librdmacm does.
func command[T any](fd int, number uint32, a *T) syscall.Errno {
	octets := make([]byte, 8+unsafe.Sizeof(*a))
	*(*uint32)(unsafe.Pointer(&octets[0])) = number
	copy(octets[8:], unsafe.Slice((*byte)(unsafe.Pointer(a)), unsafe.Sizeof(*a)))
	return cmCommand(fd, octets)
}

// channel opens an event channel. Its descriptor is none of the process.
func (d *desk) channel(name string) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_NONBLOCK|syscall.O_CLOEXEC); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _, _ = syscall.Close(ends[0]), syscall.Close(ends[1]) })
	fd := 1<<20 + ends[0]
	openChannel(fd, ends[1])
	d.t.Cleanup(func() { closeChannel(fd) })
	cmMu.Lock()
	defer cmMu.Unlock()
	d.channels[name], d.fds[name] = channels[fd], fd
}

// create creates an identifier.
func (d *desk) create(name, on string) syscall.Errno {
	var ch *channel
	a := argument(ch.create)
	var id uint32
	assign(&a.uid, 1)
	assign(&a.ps, 0x0106)
	assign(&a.response, address(&id))
	errno := command(d.fds[on], cmdCreate, a)
	d.ids[name] = id
	return errno
}

// channelOf is the descriptor of an identifier's channel.
func (d *desk) channelOf(id string) int {
	for fd, ch := range channels {
		if i := identifiers.get(d.ids[id]); i != nil && i.channel == ch {
			return fd
		}
	}
	return 0
}

// put puts an address into a structure of the system's.
func put(to unsafe.Pointer, a netip.AddrPort) {
	b := unsafe.Slice((*byte)(to), 28)
	clear(b)
	*(*uint16)(to) = syscall.AF_INET
	b[2], b[3] = byte(a.Port()>>8), byte(a.Port())
	copy(b[4:], a.Addr().AsSlice())
}

// localOfID is where an identifier is bound.
func (d *desk) localOfID(name string) netip.AddrPort {
	id := identifiers.get(d.ids[name])
	cmMu.Lock()
	defer cmMu.Unlock()
	return id.local
}

// pair is the queue pair of an identifier, which is made when it is needed.
func (d *desk) pair(name string) *queuePair {
	if d.pairs[name] == nil {
		d.pairs[name] = d.bed.newQP()
	}
	return d.pairs[name]
}

func (d *desk) do(name string, args []string) string {
	id := uint64(0)
	on := 0
	if len(args) > 0 {
		id, on = uint64(d.ids[args[0]]), d.channelOf(args[0])
	}
	errno := syscall.Errno(0)
	switch name {
	case "channel":
		d.channel(args[0])
	case "id":
		errno = d.create(args[0], args[1])
	case "bind":
		a := argument(bindIP)
		assign(&a.id, id)
		at := netip.MustParseAddrPort(args[1])
		put(unsafe.Pointer(&a.addr), at)
		errno = command(on, cmdBindIP, a)
	case "listen":
		a := argument(listen)
		backlog, _ := strconv.Atoi(args[1])
		assign(&a.id, id)
		assign(&a.backlog, uint64(backlog))
		errno = command(on, cmdListen, a)
	case "resolve":
		a := argument(resolveIP)
		assign(&a.id, id)
		put(unsafe.Pointer(&a.dst_addr), d.localOfID(args[1]))
		errno = command(on, cmdResolveIP, a)
	case "route":
		a := argument(resolveRoute)
		assign(&a.id, id)
		errno = command(on, cmdResolveRoute, a)
	case "connect":
		a := argument(connect)
		assign(&a.id, id)
		assign(&a.conn_param.qp_num, uint64(d.pair(args[0]).number))
		a.conn_param.responder_resources, a.conn_param.initiator_depth = 1, 1
		for i, c := range []byte(args[1]) {
			assign(&a.conn_param.private_data[i], uint64(c))
		}
		assign(&a.conn_param.private_data_len, uint64(len(args[1])))
		errno = command(on, cmdConnect, a)
	case "accept":
		a := argument(accept)
		assign(&a.id, id)
		assign(&a.uid, 1)
		assign(&a.conn_param.qp_num, uint64(d.pair(args[0]).number))
		a.conn_param.responder_resources, a.conn_param.initiator_depth = 1, 1
		for i, c := range []byte(args[1]) {
			assign(&a.conn_param.private_data[i], uint64(c))
		}
		assign(&a.conn_param.private_data_len, uint64(len(args[1])))
		errno = command(on, cmdAccept, a)
	case "accept-with": // the queue pair of another identifier
		d.pairs[args[0]] = d.pair(args[1])
		return d.do("accept", []string{args[0], args[2]})
	case "reject":
		a := argument(reject)
		assign(&a.id, id)
		for i, c := range []byte(args[1]) {
			assign(&a.private_data[i], uint64(c))
		}
		assign(&a.private_data_len, uint64(len(args[1])))
		errno = command(on, cmdReject, a)
	case "disconnect":
		a := argument(disconnect)
		assign(&a.id, id)
		errno = command(on, cmdDisconnect, a)
	case "destroy":
		a := argument(destroyIdentifier)
		var reported uint32
		assign(&a.id, id)
		assign(&a.response, address(&reported))
		if errno = command(on, cmdDestroy, a); errno == 0 {
			return fmt.Sprintf("%s: %d events reported", args[0], reported)
		}
	case "migrate":
		var ch *channel
		a := argument(ch.migrate)
		var reported uint32
		assign(&a.id, id)
		assign(&a.response, address(&reported))
		if errno = command(d.fds[args[1]], cmdMigrate, a); errno == 0 {
			return fmt.Sprintf("%s: %d events reported", args[0], reported)
		}
	case "event":
		return d.event(args)
	case "none":
		if n := len(d.channels[args[0]].events); n > 0 {
			return fmt.Sprintf("%d events", n)
		}
		return "none"
	default:
		d.t.Fatalf("no command %q", name)
	}
	if errno != 0 {
		return fmt.Sprintf("%s %s: %v", name, args[0], errno)
	}
	return ""
}

// event takes the next event of a channel. A request for a connection gets the name that
// follows.
func (d *desk) event(args []string) string {
	ch := d.channels[args[0]]
	a := argument(ch.next)
	e := like(&(&cmEvent{}).resp)
	assign(&a.response, address(e))
	errno := syscall.EAGAIN
	eventually(d.t, "an event", func() bool {
		errno = command(d.fds[args[0]], cmdGetEvent, a)
		return errno != syscall.EAGAIN
	})
	if errno != 0 {
		return errno.Error()
	}
	who := "?"
	if uint32(e.event) == connectRequest {
		who = args[1]
		d.ids[who] = uint32(e.id)
	}
	for name, id := range d.ids {
		if id == uint32(e.id) && identifiers.get(id) != nil {
			who = name
		}
	}
	line := fmt.Sprintf("%s: %s", who, eventNames[uint32(e.event)])
	if e.status != 0 {
		line += fmt.Sprintf(", %v", syscall.Errno(-int32(e.status)))
	}
	p := (&cmEvent{resp: *e}).privateData()
	if len(p) > 0 {
		line += fmt.Sprintf(", %q", p)
	}
	return line
}

// privateData is what an event has brought.
func (e *cmEvent) privateData() []byte {
	// struct rdma_ucm_conn_param: the data is behind two numbers of 4 octets.
	p := (*[272]byte)(unsafe.Pointer(&e.resp.param))
	return p[8 : 8+int(p[8+256])]
}

// TestConnectionsOfRDMACM runs the scripts: commands of a program, and the events that it
// gets.
func TestConnectionsOfRDMACM(t *testing.T) {
	script.Files(t, "testdata/cm/*.txt", func(t *testing.T, file string) {
		d := newDesk(t)
		script.Run(t, file, d.do)
	})
}

// TestConnectionsArriveInTheOrderInWhichTheyWereAskedFor is what perftest relies on, which
// numbers its queue pairs by it at either end.
func TestConnectionsArriveInTheOrderInWhichTheyWereAskedFor(t *testing.T) {
	const rounds, together = 10, 8
	d := newDesk(t)
	d.run("channel s", "channel c", "id server s", "bind server 127.0.0.1:0", "listen server 64")
	for round := range rounds {
		clients := make([]string, together)
		for i := range clients {
			clients[i] = fmt.Sprintf("%d-%d", round, i)
			d.run("id "+clients[i]+" c", "resolve "+clients[i]+" server", "event c")
			d.pair(clients[i])
		}
		for _, client := range clients {
			d.run("connect " + client + " " + client)
		}
		for i, client := range clients {
			request := "request-" + client
			if said := d.do("event", []string{"s", request}); said != fmt.Sprintf("%s: connect-request, %q", request, client) {
				t.Fatalf("request %d of round %d: %s", i, round, said)
			}
		}
	}
}

// TestCommandsThatAreNoneAreRefused writes what librdmacm never would.
func TestCommandsThatAreNoneAreRefused(t *testing.T) {
	d := newDesk(t)
	d.channel("c")
	if errno := cmCommand(d.fds["c"], make([]byte, 8)); errno == 0 {
		t.Error("creating without arguments succeeds")
	}
	for number := uint32(1); number < 64; number++ {
		octets := make([]byte, 8+512)
		*(*uint32)(unsafe.Pointer(&octets[0])) = number
		if errno := cmCommand(d.fds["c"], octets); errno == 0 && number != 15 { // NOTIFY
			t.Errorf("command %d for no identifier succeeds", number)
		}
	}
	if errno := cmCommand(12345, make([]byte, 8)); !errors.Is(errno, syscall.EBADF) {
		t.Errorf("a channel that is none: %v", errno)
	}
}

// TestAnEventThatTheProgramWritesComesOutOfItsChannel is rdma_write_cm_event.
func TestAnEventThatTheProgramWritesComesOutOfItsChannel(t *testing.T) {
	d := newDesk(t)
	d.channel("c")
	if errno := d.create("one", "c"); errno != 0 {
		t.Fatal(errno)
	}
	w := writtenEvent{id: d.ids["one"], event: userEvent, status: 77, argument: [8]byte{1, 2, 3, 4, 5, 6, 7, 8}}
	if errno := command(d.fds["c"], writeCMEvent, &w); errno != 0 {
		t.Fatal(errno)
	}
	var ch *channel
	a := argument(ch.next)
	e := like(&(&cmEvent{}).resp)
	assign(&a.response, address(e))
	if errno := command(d.fds["c"], cmdGetEvent, a); errno != 0 {
		t.Fatal(errno)
	}
	if got := [8]byte(e.param[:8]); uint32(e.id) != w.id || e.uid != 1 || e.event != userEvent || e.status != 77 || got != w.argument {
		t.Errorf("event %d with status %d and %v, of %d", e.event, e.status, got, e.id)
	}
	if w.event = established; command(d.fds["c"], writeCMEvent, &w) != syscall.EINVAL {
		t.Error("an event of the connection's can be written")
	}
}

// TestRequestsThatNobodyTakesAreBounded floods a listener whose program takes no event.
func TestRequestsThatNobodyTakesAreBounded(t *testing.T) {
	d := newDesk(t)
	d.channel("c")
	const backlog = 4
	for _, line := range []string{"id server c", "bind server 127.0.0.1:0", fmt.Sprintf("listen server %d", backlog)} {
		f := strings.Fields(line)
		if said := d.do(f[0], f[1:]); said != "" {
			t.Fatal(said)
		}
	}
	before := len(identifiers.all())
	to := d.localOfID("server")
	var request [20]byte // MPA's, of revision 1, without private data
	copy(request[:], "MPA ID Req Frame\x40\x01")
	var flood []net.Conn
	for range 200 {
		c, err := net.Dial("tcp", to.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = c.Write(request[:]) // it may have been closed already
		flood = append(flood, c)
	}
	// The last of them is in the listener, or closed, when all have been looked at.
	eventually(t, "a connection that was given up", func() bool {
		for _, c := range flood {
			if closed(c) {
				return true
			}
		}
		return false
	})
	if n := len(identifiers.all()) - before; n > backlog {
		t.Errorf("there are %d requests, expected at most %d", n, backlog)
	}
	for range backlog { // they come on as the program takes them
		if said := d.do("event", []string{"c", "one"}); said != "one: connect-request" {
			t.Error(said)
		}
	}
	if said := d.do("event", []string{"c", "more"}); said != "more: connect-request" {
		t.Error(said)
	}
}

// closed reports whether the other end has closed a connection.
func closed(c net.Conn) (is bool) {
	rc, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return true
	}
	_ = rc.Control(func(fd uintptr) {
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		is = n == 0 && err == nil || err != nil && err != syscall.EAGAIN
	})
	return is
}

// TestARejectedConnectionLeavesNoDescriptor counts them.
func TestARejectedConnectionLeavesNoDescriptor(t *testing.T) {
	secure := newOffice(t).encryption("127.0.0.1")
	for what, e := range map[string]encryption{"plain": {}, "TLS": secure, "a plain client of TLS": ends(encryption{}, secure)} {
		t.Run(what, func(t *testing.T) { rejectOften(t, e) })
	}
}

// rejectOften counts descriptors while connections are rejected.
func rejectOften(t *testing.T, e encryption) {
	d := newDesk(t)
	use(t, e)
	request := "event s request"
	if e.identity == nil && e.server != nil {
		request = "none s" // TLS is in front of it
	}
	d.run("channel s", "channel c", "id server s", "bind server 127.0.0.1:0", "listen server 8")
	reject := func() {
		d.run("id client c", "resolve client server", "event c", "connect client hello", request, "reject request no", "event c", "destroy client", "destroy request")
	}
	reject()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it closes what is forgotten
	first := descriptors(t)
	said := stderrOf(t, func() {
		for range 20 {
			reject()
		}
	})
	if (said == "") != (request != "none s") {
		t.Errorf("said %q", said)
	}
	eventually(t, "the end of all connections", func() bool { return descriptors(t) <= first })
}

func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
