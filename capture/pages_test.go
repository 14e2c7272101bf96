//go:build unix

package capture

import (
	"net"
	"testing"

	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/internal/pages/pagestest"
	"github.com/weft-rdma/weft/iwarptest"
)

// Octets that cannot be read are an error of the write, if the caller catches the fault.
// The capture goes on, also of other connections on the same Writer.
func TestOctetsThatCannotBeReadDisturbNobody(t *testing.T) {
	none := pagestest.NoAccess(t, 1)
	write := func(c net.Conn, p []byte) (err error) {
		defer pages.Catch(&err, [][]byte{p}, pages.Trap())
		_, err = c.Write(p)
		return err
	}
	all := record(t, func(w *Writer) {
		a, b := iwarptest.Pipe()
		x, y := iwarptest.Pipe()
		bad, good := Conn(a, w), Conn(x, w)
		if err := write(bad, none); err == nil {
			t.Error("no error")
		}
		say(t, good, "hello")
		hear(t, y, "hello")
		say(t, bad, "again")
		hear(t, b, "again")
		for _, c := range []net.Conn{bad, good, b, y} {
			c.Close()
		}
	})
	said := ""
	for _, p := range all {
		said += string(p.payload)
	}
	if said != "helloagain" {
		t.Errorf("recorded %q, expected both", said)
	}
}
