package service

import (
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// pass gives files the numbers that a service manager gives them, and returns the first.
func pass(t *testing.T, files ...*os.File) (first int) {
	t.Helper()
	const from = 400 // nothing else has such numbers here
	for i, f := range files {
		raw, err := f.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var failed error
		if err := raw.Control(func(fd uintptr) { failed = dup(int(fd), from+i) }); err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		f.Close()
	}
	return from
}

// fileOf is the file of a socket, which it closes.
func fileOf(t *testing.T, s interface {
	File() (*os.File, error)
	Close() error
}) *os.File {
	t.Helper()
	defer s.Close()
	f, err := s.File()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSocketsOfTheManagerListen(t *testing.T) {
	rdma, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	at, atUDP := rdma.Addr().String(), udp.LocalAddr().String()
	for _, name := range []string{"systemd", "a supervisor"} {
		t.Run(name, func(t *testing.T) {
			vars := map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "rdma:nfs"}
			var peer *os.File
			if name != "systemd" {
				pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
				if err != nil {
					t.Fatal(err)
				}
				peer = os.NewFile(uintptr(pair[0]), "peer")
				defer peer.Close()
				vars["LISTEN_PID"], vars[ControlVariable] = "6", strconv.Itoa(pair[1])
			}
			env := environ(vars)
			a, b := duplicate(t, rdma), duplicate(t, udp)
			env.first = pass(t, a, b)
			m, err := open(env)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if m.Supervised() != (peer != nil) {
				t.Errorf("supervised %v", m.Supervised())
			}
			tcp, datagrams := m.Sockets.Take("rdma"), m.Sockets.Take("nfs")
			if len(tcp) != 1 || tcp[0].Listener == nil || tcp[0].addr().String() != at {
				t.Fatalf("got %+v", tcp)
			}
			if len(datagrams) != 1 || datagrams[0].Packet == nil || datagrams[0].addr().String() != atUDP {
				t.Fatalf("got %+v", datagrams)
			}
			nc, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			got, err := tcp[0].Listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			got.Close()
			tcp[0].Close()
			datagrams[0].Close()
		})
	}
	rdma.Close()
	udp.Close()
}

// duplicate is another descriptor of a socket.
func duplicate(t *testing.T, s interface{ File() (*os.File, error) }) *os.File {
	t.Helper()
	f, err := s.File()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestASocketOfUnixListens(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // a short name
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: dir + "/s", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	env := environ(map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "metrics"})
	env.first = pass(t, duplicate(t, ln))
	m, err := open(env)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if len(m.Sockets) != 1 || m.Sockets[0].Listener == nil {
		t.Errorf("got %+v", m.Sockets)
	}
}

func TestAConnectionIsNoSocketThatListens(t *testing.T) {
	ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]*os.File{"a connection": fileOf(t, nc.(*net.TCPConn)), "a file": file} {
		env := environ(map[string]string{"LISTEN_PID": "7", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "rdma"})
		env.first = pass(t, f)
		if m, err := open(env); err == nil || !strings.Contains(err.Error(), `"rdma"`) {
			t.Errorf("%s: %+v, %v", what, m, err)
		}
	}
}

func dup(fd, to int) error { return syscall.Dup3(fd, to, syscall.O_CLOEXEC) }
