package observe

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
)

// from is a listener that accepts a connection from each of some addresses.
type from []*far

func (f *from) Accept() (net.Conn, error) {
	if len(*f) == 0 {
		return nil, io.EOF
	}
	c := (*f)[0]
	*f = (*f)[1:]
	return c, nil
}

func (*from) Close() error   { return nil }
func (*from) Addr() net.Addr { return nil }

// far is a connection of another host.
type far struct {
	net.Conn
	host   string
	closed bool
}

func (c *far) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.host), Port: 7} }
func (c *far) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.ParseIP("203.0.113.1"), Port: 9469} }
func (c *far) Close() error         { c.closed = true; return nil }

// A host with many connections loses its own oldest ones, and waits for nobody.
func TestScrapersMakeRoomForThoseOfOtherHosts(t *testing.T) {
	all := from{{host: "198.51.100.1"}}
	for range 2 * maxConnections {
		all = append(all, &far{host: "198.51.100.2"})
	}
	all = append(all, &far{host: "198.51.100.3"})
	list, l := all, &limited{Listener: &all}
	for range list {
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	closed := 0
	for i, c := range list {
		if c.closed {
			closed++
		}
		if want := i > 0 && i <= maxConnections+2; c.closed != want {
			t.Errorf("connection %d, of %s: closed: %v", i, c.host, c.closed)
		}
	}
	if len(l.open) != maxConnections || closed != len(list)-maxConnections {
		t.Errorf("%d open, %d closed of %d", len(l.open), closed, len(list))
	}
	for _, c := range l.open {
		defer c.Close()
	}
}

// net/http accepts 4 KiB more than it is told.
func TestTheLimitOfAHeaderIsTheOneThatIsDocumented(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, full(t), "127.0.0.1:0")
	for size, want := range map[int]string{maxHeader - 1<<10: " 200 ", maxHeader + 1<<10: " 431 "} {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", strings.Repeat("x", size)) // fails when the server closes
		answer := make([]byte, 13)
		if _, err := io.ReadFull(c, answer); err != nil || !strings.Contains(string(answer), want) {
			t.Errorf("a header of %d octets: %q, %v, want %s", size, answer, err, want)
		}
	}
}

// hesitant is a server whose counts take as long as the test wants.
type hesitant struct {
	aServer
	asked, answer chan struct{}
}

func (h hesitant) ServerStats() map[string]oncrpc.ServerStats {
	select {
	case h.asked <- struct{}{}:
	default: // asked again, by a scrape that went on
	}
	<-h.answer
	return nil
}

func TestFewScrapesAreAnsweredAtATime(t *testing.T) {
	nettest.CheckLeaks(t)
	o, h := New(Config{Version: "1"}), hesitant{asked: make(chan struct{}, maxScrapes), answer: make(chan struct{})}
	o.SetServer(h)
	s := serve(t, o, "127.0.0.1:0")
	got := make(chan int, maxScrapes)
	for range maxScrapes {
		go func() {
			status, _ := get(t, s, "/metrics")
			got <- status
		}()
	}
	for range maxScrapes {
		nettest.Await(t, h.asked)
	}
	if status, _ := get(t, s, "/metrics"); status != http.StatusServiceUnavailable {
		t.Errorf("one more scrape has status %d", status)
	}
	if status, _ := get(t, s, "/healthz"); status != http.StatusOK {
		t.Errorf("/healthz has status %d meanwhile", status)
	}
	close(h.answer)
	for range maxScrapes {
		if status := nettest.Await(t, got); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
}
