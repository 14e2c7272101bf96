package main

import (
	gocontext "context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// twoPairs returns two queue pairs of which the first dials.
func twoPairs(t *testing.T) (dials, listens *queuePair) {
	t.Helper()
	anEngine(t, true)
	b := newBed(t)
	dials, listens = b.newQP(), b.newQP()
	if dials.number > listens.number {
		dials, listens = listens, dials
	}
	return dials, listens
}

func TestQueuePairsFindEachOtherByTheirNumbers(t *testing.T) {
	for first, who := range []string{"who dials is ready first", "who listens is ready first"} {
		t.Run(who, func(t *testing.T) {
			a, b := twoPairs(t)
			pairs := [2]*queuePair{a, b}
			attrs := [2]attributes{{dest: b.number, sendPSN: 1, recvPSN: 2}, {dest: a.number, sendPSN: 2, recvPSN: 1}}
			pairs[first].ready(t, attrs[first])
			pairs[1-first].ready(t, attrs[1-first])
			a.awaitStream(t)
			b.awaitStream(t)
			a.destroy(t)
			b.destroy(t)
		})
	}
}

// TestStrangersDoNotKeepThePeerOut has strangers ask for a queue pair before it is ready, more
// of them than there would be places for it alone, and stay. Its peer gets it.
func TestStrangersDoNotKeepThePeerOut(t *testing.T) {
	dials, listens := twoPairs(t)
	// Another pair of the same port has the listener there before.
	b := newBed(t)
	other := b.newQP()
	other.ready(t, attributes{dest: 1})
	s := newStranger(t)
	ctx, cancel := gocontext.WithCancel(t.Context())
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	to := portOf(listens.number)
	for i := range 20 {
		wrong := greet(uint32(i), listens.number, 7, 7, true)
		asking.Go(func() { _, _ = s.dial(ctx, to, wrong) })
	}
	eventually(t, "the strangers", func() bool { return waitingFor(listens.number) >= 16 })
	listens.ready(t, attributes{dest: dials.number, sendPSN: 2, recvPSN: 1})
	dials.ready(t, attributes{dest: listens.number, sendPSN: 1, recvPSN: 2})
	listens.awaitStream(t)
	dials.awaitStream(t)
	eventually(t, "the rejection of the strangers", func() bool { return waitingFor(listens.number) == 0 })
}

// waitingFor is how many requests wait for a queue pair.
func waitingFor(number uint32) int {
	early.mu.Lock()
	defer early.mu.Unlock()
	return len(early.byNumber[number])
}

// eventually waits for what comes without telling.
func eventually(t *testing.T, what string, came func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !came(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}

// TestAStrangerGetsNoQueuePair asks with everything right but one thing.
func TestAStrangerGetsNoQueuePair(t *testing.T) {
	_, listens := twoPairs(t)
	const peer = 5 // a number below that of any port
	listens.ready(t, attributes{dest: peer, sendPSN: 0xA, recvPSN: 0xB})
	s := newStranger(t)
	to := portOf(listens.number)
	for _, wrong := range []struct {
		what string
		data []byte
	}{
		{"no private data", nil},
		{"short", greet(peer, listens.number, 0xB, 0xA, true)[:20]},
		{"long", append(greet(peer, listens.number, 0xB, 0xA, true), 0)},
		{"its own number", greet(6, listens.number, 0xB, 0xA, true)},
		{"a number that nobody has", greet(peer, listens.number+100, 0xB, 0xA, true)},
		{"its PSN", greet(peer, listens.number, 1, 0xA, true)},
		{"the other's PSN", greet(peer, listens.number, 0xB, 1, true)},
		{"the other's PSN, its own unknown", greet(peer, listens.number, 0xB, 1, false)},
		{"the magic", append([]byte("Weft"), greet(peer, listens.number, 0xB, 0xA, true)[4:]...)},
	} {
		ctx, cancel := gocontext.WithTimeout(t.Context(), time.Minute)
		_, err := s.dial(ctx, to, wrong.data)
		cancel()
		if !errors.As(err, new(*cm.RejectedError)) {
			t.Errorf("%s: %v, expected a rejection", wrong.what, err)
		}
	}
	if state := listens.qp.State(); state != verbs.Idle {
		t.Errorf("the queue pair is %v", state)
	}
	// The peer itself gets it, and nobody after it.
	ctx, cancel := gocontext.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	right := greet(peer, listens.number, 0xB, 0xA, true)
	if _, err := s.dial(ctx, to, right); err != nil {
		t.Fatalf("the peer: %v", err)
	}
	if _, err := s.dial(ctx, to, right); !errors.As(err, new(*cm.RejectedError)) {
		t.Errorf("a replay: %v, expected a rejection", err)
	}
}

// TestAQueuePairIsReachedAtItsOwnAddressAlone asks at another address of this machine, at
// which another queue pair of the same port is reached, and at one at which none is.
func TestAQueuePairIsReachedAtItsOwnAddressAlone(t *testing.T) {
	_, listens := twoPairs(t)
	const peer = 5
	second := netip.AddrFrom4([4]byte{127, 0, 0, 2})
	listens.ready(t, attributes{dest: peer, sendPSN: 0xA, recvPSN: 0xB})
	port := uint16(listens.number >> 8)
	if c, err := net.Dial("tcp", netip.AddrPortFrom(second, port).String()); err == nil {
		_ = c.Close()
		t.Error("somebody listens at an address that no queue pair has")
	}
	other := newBed(t).newQP()
	other.ready(t, attributes{dest: peer, local: second, peer: second})
	s := newStranger(t)
	ctx, cancel := gocontext.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := s.dial(ctx, netip.AddrPortFrom(second, uint16(other.number>>8)), greet(peer, listens.number, 0xB, 0xA, true))
	if !errors.As(err, new(*cm.RejectedError)) {
		t.Errorf("at another address: %v, expected a rejection", err)
	}
}

// TestSilentConnectionsDoNotKeepThePeerOut opens more connections than there are places in
// start-up, and sends half a header on every other one.
func TestSilentConnectionsDoNotKeepThePeerOut(t *testing.T) {
	dials, listens := twoPairs(t)
	listens.ready(t, attributes{dest: dials.number, sendPSN: 2, recvPSN: 1})
	for i := range 300 {
		c, err := net.Dial("tcp", portOf(listens.number).String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 {
			_, _ = c.Write([]byte("MPA ID Req")) // it may be closed already
		}
	}
	dials.ready(t, attributes{dest: listens.number, sendPSN: 1, recvPSN: 2})
	listens.awaitStream(t)
}

// TestNobodyElseCanListenAtAReservedPort is somebody who binds as servers do, before the
// queue pair is told its peer.
func TestNobodyElseCanListenAtAReservedPort(t *testing.T) {
	socket, port, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(socket)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(port), Addr: loopback.As4()})
	if err == nil {
		err = unix.Listen(fd, 1)
	}
	if err != unix.EADDRINUSE {
		t.Errorf("%v, expected that the port is in use", err)
	}
}

// TestADestroyedQueuePairLeavesNoRequests destroys a queue pair for which a request waits.
func TestADestroyedQueuePairLeavesNoRequests(t *testing.T) {
	_, listens := twoPairs(t)
	other := newBed(t).newQP()
	other.ready(t, attributes{dest: 1})
	s := newStranger(t)
	ctx, cancel := gocontext.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result := make(chan error)
	go func() {
		_, err := s.dial(ctx, portOf(listens.number), greet(5, listens.number, 1, 1, true))
		result <- err
	}()
	eventually(t, "the request", func() bool { return waitingFor(listens.number) == 1 })
	listens.destroy(t)
	if err := <-result; !errors.As(err, new(*cm.RejectedError)) {
		t.Errorf("%v, expected a rejection", err)
	}
}

// TestSendsWithoutAPeerFail is of the end that listens: what it has to send fails when the
// peer has had its time, and receives wait on.
func TestSendsWithoutAPeerFail(t *testing.T) {
	_, listens := twoPairs(t)
	listens.ready(t, attributes{dest: 5})
	const retriesExceeded = 12 // IBV_WC_RETRY_EXC_ERR
	r := &ring{completionQueue: listens.sends.to}
	listens.postReceive(0)
	listens.uncalled()
	if got := r.take(); got != nil {
		t.Fatalf("%v without a request to send", got)
	}
	listens.postSend(0, 1, 1, 0)
	listens.uncalled()
	var got []taken
	eventually(t, "the completion", func() bool { got = append(got, r.take()...); return len(got) > 0 })
	if want := (taken{0, retriesExceeded}); got[0] != want {
		t.Errorf("%v, expected %v first", got, want)
	}
}

// TestAProcessWithoutDescriptorsIsToldAtOnce takes all that there may be.
func TestAProcessWithoutDescriptorsIsToldAtOnce(t *testing.T) {
	q, _ := twoPairs(t)
	q.changeTo(t, nil, stateInit, maskInit)
	a := argument(modifyQP)
	want := q.attributes
	assign(&want.qp_state, stateRTR)
	assign(&want.dest_qp_num, uint64(q.number+1))
	want.ah_attr.is_global = 1
	*(*[16]byte)(unsafe.Pointer(&want.ah_attr.grh.dgid)) = loopback.As16()
	*(*[16]byte)(unsafe.Pointer(&a.source)) = loopback.As16()
	assign(&a.handle, uint64(q.handle))
	assign(&a.mask, maskRTR)
	a.attributes = unsafe.Pointer(&want)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 3
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	got := modifyQP(a)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if got != syscall.EMFILE {
		t.Errorf("%v, expected EMFILE", got)
	}
	must(t, modifyQP(a))
}
