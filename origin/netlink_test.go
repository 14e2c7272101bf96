package origin

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
)

// octets reads hexadecimal digits with blanks, and comments from # to the end of a
// line.
func octets(t testing.TB, text string) (b []byte) {
	t.Helper()
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		part, err := hex.DecodeString(strings.Join(strings.Fields(line), ""))
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, part...)
	}
	return b
}

var (
	from4 = netip.MustParseAddrPort("127.0.0.1:4242")
	to4   = netip.MustParseAddrPort("192.0.2.7:20049")
	from6 = netip.MustParseAddrPort("[2001:db8::1]:4242")
	to6   = netip.MustParseAddrPort("[::1]:20049")
)

// What a Linux kernel on x86-64 takes and gives.
const (
	askFor4 = `
		48000000 1400 0100 01000000 00000000         # 72 octets, SOCK_DIAG_BY_FAMILY, request, number 1
		02 06 00 00 ffffffff                         # AF_INET, TCP, any state
		1092 4e51                                    # ports 4242, 20049
		7f000001 00000000 00000000 00000000
		c0000207 00000000 00000000 00000000
		00000000 ffffffff ffffffff                   # any interface, no cookie`
	askFor6 = `
		48000000 1400 0100 01000000 00000000
		0a 06 00 00 ffffffff
		1092 4e51
		20010db8 00000000 00000000 00000001
		00000000 00000000 00000000 00000001
		02000000 ffffffff ffffffff                   # interface 2`
	shown4 = `
		58000000 1400 0000 01000000 b1a40100
		02 01 00 00                                  # AF_INET, established, no timer
		1092 4e51
		7f000001 00000000 00000000 00000000
		c0000207 00000000 00000000 00000000
		00000000 10000000 00000000                   # interface, cookie
		00000000 00000000 00000000                   # timer, queues
		d0070000 86010000                            # uid 2000, inode 390`
	shownMapped = `
		58000000 1400 0000 01000000 b1a40100
		0a 01 00 00
		1092 4e51
		00000000 00000000 0000ffff 7f000001
		00000000 00000000 0000ffff c0000207
		00000000 10000000 00000000
		00000000 00000000 00000000
		d0070000 86010000`
	shown6 = `
		58000000 1400 0000 01000000 b1a40100
		0a 08 00 00                                  # CLOSE_WAIT
		1092 4e51
		20010db8 00000000 00000000 00000001
		00000000 00000000 00000000 00000001
		00000000 10000000 00000000
		00000000 00000000 00000000
		00000000 00000000                            # root's, nobody has it`
	noSocket = `
		24000000 0200 0000 01000000 b1a40100         # NLMSG_ERROR
		feffffff                                     # -ENOENT
		48000000 1400 0100 01000000 00000000         # about this`
	askRoute4 = `
		24000000 1a00 0100 01000000 00000000         # RTM_GETROUTE
		02 20 00 00 00 00 00 00 00000000             # AF_INET, 32 bits
		0800 0100 c0000207                           # RTA_DST`
	askRoute6 = `
		30000000 1a00 0100 01000000 00000000
		0a 80 00 00 00 00 00 00 00000000
		1400 0100 20010db8 00000000 00000000 00000001`
	localRoute = `
		24000000 1800 0000 01000000 b1a40100         # RTM_NEWROUTE
		02 20 00 00 ff 00 00 02 00000000             # table local, RTN_LOCAL
		0800 0100 c0000207`
	otherRoute = `
		24000000 1800 0000 01000000 b1a40100
		02 20 00 00 fe 00 00 01 00000000             # table main, RTN_UNICAST
		0800 0100 c0000207`
)

func TestQuestionsOfNetlinkAreAsLinuxTakesThem(t *testing.T) {
	le := binary.LittleEndian
	for _, tt := range []struct {
		what string
		got  []byte
		want string
	}{
		{"a socket of IPv4", diagRequest(le, 1, from4, to4, 0), askFor4},
		{"a socket of IPv6", diagRequest(le, 1, from6, to6, 2), askFor6},
		{"a route of IPv4", routeRequest(le, 1, to4.Addr()), askRoute4},
		{"a route of IPv6", routeRequest(le, 1, from6.Addr()), askRoute6},
	} {
		if want := octets(t, tt.want); !bytes.Equal(tt.got, want) {
			t.Errorf("%s:\n got %x\nwant %x", tt.what, tt.got, want)
		}
	}
	// The other order is for numbers only.
	be := diagRequest(binary.BigEndian, 1, from4, to4, 2)
	if want := octets(t, "00000048 0014 0001 00000001 00000000 0206 0000 ffffffff 1092 4e51 7f000001"); !bytes.HasPrefix(be, want) {
		t.Errorf("of a host with the other order:\n got %x\nwant %x...", be, want)
	}
}

func TestSocketsAreReadAsLinuxShowsThem(t *testing.T) {
	for _, tt := range []struct {
		what, message string
		want          socket
	}{
		{"IPv4", shown4, socket{local: from4, remote: to4, state: 1, uid: 2000, inode: 390}},
		{"IPv4 of a socket of IPv6", shownMapped, socket{local: from4, remote: to4, state: 1, uid: 2000, inode: 390}},
		{"IPv6", shown6, socket{local: from6, remote: to6, state: 8}},
	} {
		got, err := parseDiag(binary.LittleEndian, octets(t, tt.message), 1)
		if err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v, want %+v", tt.what, got, err, tt.want)
		}
	}
}

func TestRoutesTellWhatIsLocal(t *testing.T) {
	for message, want := range map[string]bool{localRoute: true, otherRoute: false} {
		if got, err := parseRoute(binary.LittleEndian, octets(t, message), 1); got != want || err != nil {
			t.Errorf("local %v, %v, want %v", got, err, want)
		}
	}
}

func TestAnswersThatAreNoneAreErrors(t *testing.T) {
	le := binary.LittleEndian
	if _, err := parseDiag(le, octets(t, noSocket), 1); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("an error of the kernel's is read as %v", err)
	}
	whole := octets(t, shown4)
	if _, err := parseDiag(le, whole, 2); err == nil {
		t.Error("the answer to another question is taken")
	}
	if _, err := parseRoute(le, whole, 1); err == nil {
		t.Error("a socket is taken for a route")
	}
	if _, err := parseDiag(le, octets(t, "24000000 0200 0000 01000000 00000000 00000000 48000000 14000100 01000000 00000000"), 1); err == nil {
		t.Error("an acknowledgement is taken for a socket")
	}
	for n := range whole {
		if _, err := parseDiag(le, whole[:n], 1); err == nil {
			t.Errorf("%d of %d octets are taken", n, len(whole))
		}
		short := bytes.Clone(whole[:n])
		if n >= nlmsgHdrLen {
			le.PutUint32(short, uint32(n))
			if _, err := parseDiag(le, short, 1); err == nil {
				t.Errorf("a message of %d octets is taken", n)
			}
		}
	}
}

func FuzzNetlink(f *testing.F) {
	for _, seed := range []string{shown4, shownMapped, shown6, noSocket, localRoute, otherRoute, "10000000"} {
		f.Add(octets(f, seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, order := range []byteOrder{binary.LittleEndian, binary.BigEndian} {
			if s, err := parseDiag(order, b, 1); err == nil && len(b) < nlmsgHdrLen+diagMsgLen {
				t.Errorf("%d octets are taken for %+v", len(b), s)
			}
			if local, err := parseRoute(order, b, 1); err == nil && local && len(b) < nlmsgHdrLen+rtmsgLen {
				t.Errorf("%d octets are taken for a route", len(b))
			}
		}
	})
}
