package cm_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/verbs"
)

// A connection that is not admitted is closed without a reply, and nothing is read from it.
func TestAListenerTakesWhomItsConfigurationAdmits(t *testing.T) {
	nettest.CheckLeaks(t)
	a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
	admitted := &origin.Origin{Local: true, User: &origin.User{UID: 7}}
	asked, refuse := 0, true // by the one goroutine that accepts
	ln := listen(t, b, "tcp4", cm.ListenConfig{Admit: func(nc net.Conn) (*origin.Origin, error) {
		if asked++; refuse {
			refuse = false
			return nil, errors.New("not this one")
		}
		return admitted, nil
	}})
	nc, err := net.Dial("tcp", ln.Addr().String())
	var got []byte
	if err == nil {
		defer nc.Close()
		got, err = io.ReadAll(nc)
	}
	if len(got) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) { // which may come before Dial has returned
		t.Errorf("who was refused got %q, %v, want the end", got, err)
	}
	done := accepted(t.Context(), ln, func(r *cm.Request) error {
		if r.Origin() != admitted {
			t.Errorf("the request comes from %+v", r.Origin())
		}
		_, err := r.Accept(t.Context(), b.qp, cm.Params{})
		return err
	})
	_, err = cm.Dial(t.Context(), a.qp, "tcp", ln.Addr().String(), cm.Params{})
	if err := errors.Join(err, nettest.Await(t, done)); err != nil {
		t.Fatal(err)
	}
	works(t, a, b, a.qp)
	if asked != 2 {
		t.Errorf("asked %d times about two connections", asked)
	}
}

func TestARequestComesFromItsAddressIfNobodyLooked(t *testing.T) {
	a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
	ln := listen(t, b, "tcp4", cm.ListenConfig{})
	done := accepted(t.Context(), ln, func(r *cm.Request) error {
		if o := r.Origin(); o == nil || !o.Local || o.User != nil || o.Addr.String() != r.RemoteAddr().String() {
			t.Errorf("the request of %v comes from %+v", r.RemoteAddr(), o)
		}
		return r.Reject(nil)
	})
	if _, err := cm.Dial(t.Context(), a.qp, "tcp", ln.Addr().String(), cm.Params{}); err == nil {
		t.Error("a rejection is no error")
	}
	if err := nettest.Await(t, done); err != nil {
		t.Error(err)
	}
}
