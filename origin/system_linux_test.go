package origin

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/internal/nettest"
)

// The test binary is a process of another user, or in other namespaces, if it is
// asked to be.
func TestMain(m *testing.M) {
	switch os.Getenv("WEFT_ORIGIN_TEST") {
	case "dial":
		child(dialUntilEOF)
	case "namespace":
		child(lookInNamespace)
	}
	os.Exit(m.Run())
}

func child(f func() error) {
	if err := f(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func dialUntilEOF() error {
	nc, err := net.Dial("tcp", os.Getenv("WEFT_ORIGIN_ADDR"))
	if err != nil {
		return err
	}
	defer nc.Close()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// again is a command that runs the test binary again, as something. It is opened by
// the link in /proc, as other users may not search the directory that it is in.
func again(t *testing.T, as string, attr *syscall.SysProcAttr) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "WEFT_ORIGIN_TEST="+as)
	cmd.SysProcAttr, cmd.Stderr, cmd.Dir = attr, os.Stderr, "/"
	return cmd
}

// pair is both ends of a connection to an address.
func pair(t *testing.T, network, listen, dial string) (accepted, dialed *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen(network, listen)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	nc, err := net.Dial("tcp", net.JoinHostPort(dial, port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	other, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	return other.(*net.TCPConn), nc.(*net.TCPConn)
}

// ways are pairs of networks and addresses to connect by: all that this machine has.
func ways(t *testing.T) (all [][3]string) {
	all = [][3]string{{"tcp4", "127.0.0.1:0", "127.0.0.1"}, {"tcp4", "0.0.0.0:0", "127.3.2.1"}}
	if len(nettest.Networks()) > 1 {
		// The last is of IPv4, at a socket of IPv6.
		all = append(all, [3]string{"tcp6", "[::1]:0", "::1"}, [3]string{"tcp", "[::]:0", "127.0.0.1"})
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range addrs {
		if a := ipOf(n); !a.IsLoopback() && !a.IsLinkLocalUnicast() {
			all = append(all, [3]string{"tcp", ":0", a.String()})
		}
	}
	return all
}

func TestOwnSocketsAreOwn(t *testing.T) {
	for _, w := range ways(t) {
		nc, _ := pair(t, w[0], w[1], w[2])
		o, err := Look(nc)
		if err != nil || !o.Local || o.User == nil || o.User.UID != uint32(os.Geteuid()) {
			t.Errorf("%v: %+v, %v, want uid %d of this machine", w, o, err, os.Geteuid())
		}
		// And where netlink is not permitted.
		from, to := addrPort(nc.RemoteAddr()), addrPort(nc.LocalAddr())
		s, err := find(from, to, func(_, _ netip.AddrPort) (socket, error) { return socket{}, unix.EPERM })
		if uid, ownerErr := s.owner(from, to, nobody); errors.Join(err, ownerErr) != nil || uid != uint32(os.Geteuid()) {
			t.Errorf("%v by /proc: uid %d, %v, %v", w, uid, err, ownerErr)
		}
		if is, err := onInterface(from.Addr()); !is || err != nil {
			t.Errorf("%v is on an interface: %v, %v", from, is, err)
		}
	}
}

func TestASocketBoundToTheLoopbackInterfaceIsFound(t *testing.T) {
	ln := nettest.Listen(t, "tcp4")
	var bindErr error
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { bindErr = unix.BindToDevice(int(fd), "lo") })
	}}
	nc, err := d.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if bindErr != nil {
		t.Skipf("cannot bind to an interface here: %v", bindErr)
	}
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if o, err := Look(accepted); err != nil || o.User == nil || o.User.UID != uint32(os.Geteuid()) {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestWhoHasClosedIsNobody(t *testing.T) {
	for what, end := range map[string]func(*net.TCPConn) error{
		"closed":      (*net.TCPConn).Close,
		"half closed": (*net.TCPConn).CloseWrite,
		"reset": func(c *net.TCPConn) error {
			return errors.Join(c.SetLinger(0), c.Close())
		},
	} {
		nc, dialed := pair(t, "tcp4", "127.0.0.1:0", "127.0.0.1")
		if _, err := dialed.Write([]byte("evil")); err != nil {
			t.Fatal(err)
		}
		if err := end(dialed); err != nil {
			t.Fatal(err)
		}
		o, err := Look(nc)
		if !errors.Is(err, ErrOwner) || !o.Local || o.User != nil {
			t.Errorf("%s: %+v, %v, want ErrOwner", what, o, err)
		}
		_, _ = io.Copy(io.Discard, nc) // to its end, whatever that is
		if is, err := established(nc); is {
			t.Errorf("%s: established at this end, %v", what, err)
		}
	}
}

func TestASocketThatIsNotThereIsToldFromAKernelThatShowsNone(t *testing.T) {
	for _, tt := range []struct {
		what  string
		knows bool // this end of the connection
		err   error
	}{
		{"a kernel that shows sockets has none", true, errNotFound},
		{"a kernel that shows none leaves it to /proc", false, errNotFound},
	} {
		var asked []netip.AddrPort
		_, err := find(from4, to4, func(from, to netip.AddrPort) (socket, error) {
			asked = append(asked, from)
			if tt.knows && from == to4 {
				return socket{}, nil
			}
			return socket{}, unix.ENOENT
		})
		if !errors.Is(err, tt.err) || len(asked) != 2 || asked[0] != from4 || asked[1] != to4 {
			t.Errorf("%s: %v after asking for %v", tt.what, err, asked)
		}
	}
}

func TestASocketOfAnotherUserIsTheirs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it takes root to be another user; what the kernel shows of their sockets is in TestSocketsAreReadAsLinuxShowsThem")
	}
	const uid = 54321
	for _, w := range ways(t) {
		ln, err := net.Listen(w[0], w[1])
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		_, port, _ := net.SplitHostPort(ln.Addr().String())
		cmd := again(t, "dial", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, NoSetGroups: false}})
		cmd.Env = append(cmd.Env, "WEFT_ORIGIN_ADDR="+net.JoinHostPort(w[2], port))
		hold, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		nc, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		o, err := Look(nc)
		if err != nil || o.User == nil || o.User.UID != uid || o.User.GID != nobody || len(o.User.Groups) != 0 {
			t.Errorf("%v: %+v, %v, want uid %d, whom the system does not know", w, o, err, uid)
		}
		from, to := addrPort(nc.RemoteAddr()), addrPort(nc.LocalAddr())
		if s, found, err := findProc(from, to); err != nil || !found || s.uid != uid {
			t.Errorf("%v by /proc: %+v, %v, %v", w, s, found, err)
		}
		hold.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		nc.Close()
	}
}

// In namespaces of its own a process may give itself addresses.
func TestAddressesThatComeLaterCount(t *testing.T) {
	cmd := again(t, "namespace", &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	})
	var out strings.Builder
	cmd.Stderr = &out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Skipf("no namespaces to be had here: %v", err)
	}
	if err != nil {
		t.Errorf("%v: %s", err, out.String())
	}
}

// lookInNamespace is in one without addresses, as its root.
func lookInNamespace() error {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	is := func(addr string, want bool) error {
		if got, err := ours(netip.MustParseAddr(addr)); got != want || err != nil {
			return fmt.Errorf("%s is ours: %v, %w, want %v", addr, got, err, want)
		}
		return nil
	}
	if err := errors.Join(is("198.51.100.7", false), is("2001:db8::7", false), is("203.0.113.200", false)); err != nil {
		return err
	}
	if err := errors.Join(up("lo"), address(lo.Index, "198.51.100.7/32"), address(lo.Index, "2001:db8::7/128"), route(lo.Index, "203.0.113.0/24")); err != nil {
		return err
	}
	// The kernel takes addresses of IPv6 into its tables a little later.
	for begin := time.Now(); is("2001:db8::7", true) != nil && time.Since(begin) < time.Minute; {
		runtime.Gosched()
	}
	// The last is of no interface, but delivered here.
	if err := errors.Join(is("198.51.100.7", true), is("2001:db8::7", true), is("203.0.113.200", true), is("198.51.100.8", false)); err != nil {
		return err
	}
	for _, w := range [][2]string{{"198.51.100.7", "127.0.0.1"}, {"127.0.0.1", "198.51.100.7"}, {"2001:db8::7", "::1"}, {"203.0.113.200", "198.51.100.7"}} {
		if err := lookFrom(w[0], w[1]); err != nil {
			return fmt.Errorf("from %s to %s: %w", w[0], w[1], err)
		}
	}
	// An address with its routes in a table that is not asked, as in a VRF, while
	// there is a way to everywhere.
	if err := errors.Join(elsewhere(lo.Index, "198.51.100.7/32"), anywhere(lo.Index)); err != nil {
		return err
	}
	return errors.Join(is("198.51.100.7", true), is("198.51.100.8", false))
}

// lookFrom connects from one address of this machine to another, and looks.
func lookFrom(from, to string) error {
	ln, err := net.Listen("tcp", net.JoinHostPort(to, "0"))
	if err != nil {
		return err
	}
	defer ln.Close()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	nc, err := d.Dial("tcp", ln.Addr().String())
	if err != nil {
		return err
	}
	defer nc.Close()
	accepted, err := ln.Accept()
	if err != nil {
		return err
	}
	defer accepted.Close()
	o, err := Look(accepted)
	if err == nil && (!o.Local || o.User == nil || o.User.UID != 0) {
		err = fmt.Errorf("%+v", o)
	}
	return err
}

func up(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// change makes a change by rtnetlink: the header, and attributes.
func change(typ uint16, header []byte, attrs map[uint16][]byte) error {
	b := begin(native, typ, requestNumber)
	native.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE)
	b = append(b, header...)
	for typ, value := range attrs {
		b = native.AppendUint16(b, uint16(4+len(value)))
		b = native.AppendUint16(b, typ)
		b = append(b, value...)
	}
	answer, err := ask(unix.NETLINK_ROUTE, finish(native, b))
	if err != nil {
		return err
	}
	_, err = payload(native, answer, requestNumber, nlmsgError)
	if e := syscall.Errno(0); errors.As(err, &e) {
		return err
	}
	return nil // it is acknowledged
}

func address(iface int, prefix string) error {
	p := netip.MustParsePrefix(prefix)
	header := native.AppendUint32([]byte{family(p.Addr()), uint8(p.Bits()), unix.IFA_F_NODAD, 0}, uint32(iface))
	ip := p.Addr().AsSlice()
	return change(unix.RTM_NEWADDR, header, map[uint16][]byte{unix.IFA_LOCAL: ip, unix.IFA_ADDRESS: ip})
}

// elsewhere takes an address out of the table of what is delivered here.
func elsewhere(iface int, prefix string) error {
	p := netip.MustParsePrefix(prefix)
	header := []byte{family(p.Addr()), uint8(p.Bits()), 0, 0, unix.RT_TABLE_LOCAL, 0, unix.RT_SCOPE_NOWHERE, unix.RTN_LOCAL, 0, 0, 0, 0}
	return change(unix.RTM_DELROUTE, header, map[uint16][]byte{unix.RTA_DST: p.Addr().AsSlice(), unix.RTA_OIF: native.AppendUint32(nil, uint32(iface))})
}

// anywhere has all that is not delivered here sent over an interface.
func anywhere(iface int) error {
	header := []byte{unix.AF_INET, 0, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, unix.RT_SCOPE_LINK, unix.RTN_UNICAST, 0, 0, 0, 0}
	return change(unix.RTM_NEWROUTE, header, map[uint16][]byte{unix.RTA_OIF: native.AppendUint32(nil, uint32(iface))})
}

// route has a whole network delivered here.
func route(iface int, prefix string) error {
	p := netip.MustParsePrefix(prefix)
	header := []byte{family(p.Addr()), uint8(p.Bits()), 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0}
	return change(unix.RTM_NEWROUTE, header, map[uint16][]byte{unix.RTA_DST: p.Addr().AsSlice(), unix.RTA_OIF: native.AppendUint32(nil, uint32(iface))})
}
