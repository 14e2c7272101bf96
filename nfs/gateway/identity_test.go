package gateway

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

func sys(t *testing.T, uid, gid uint32, gids ...uint32) oncrpc.OpaqueAuth {
	t.Helper()
	a := oncrpc.AuthSys{Stamp: 5, MachineName: "client", UID: uid, GID: gid, GIDs: gids}
	body, err := a.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	return oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorSys, Body: body}
}

func TestCallersOnThisMachineAreWhoTheyAre(t *testing.T) {
	var many []uint32
	for gid := range uint32(20) {
		many = append(many, 100+gid)
	}
	elsewhere := &origin.Origin{}
	somebody := &origin.Origin{Local: true}
	of := func(uid uint32, groups ...uint32) *origin.Origin {
		return &origin.Origin{Local: true, User: &origin.User{UID: uid, GID: 2001, Groups: groups}}
	}
	none, gss := oncrpc.OpaqueAuth{}, oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorGSS, Body: []byte("context")}
	short := oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorShort, Body: []byte("for root")}
	unknown := oncrpc.OpaqueAuth{Flavor: 390000}
	for _, tt := range []struct {
		what       string
		from       *origin.Origin
		cred, want oncrpc.OpaqueAuth
		reject     oncrpc.AuthStat
	}{
		{"a claim from elsewhere", elsewhere, sys(t, 0, 0), sys(t, 0, 0), 0},
		{"a shorthand from elsewhere", elsewhere, short, short, 0},
		{"nobody knows from where", nil, sys(t, 7, 8), sys(t, 7, 8), 0},
		{"root of this machine", of(0), sys(t, 7, 8, 9), sys(t, 7, 8, 9), 0},
		{"root's shorthand", of(0), short, short, 0},
		{"the owner", of(2000, 4, 5), sys(t, 2000, 2001, 4), sys(t, 2000, 2001, 4), 0},
		{"the owner, by another group", of(2000, 4, 5), sys(t, 2000, 5, 2001), sys(t, 2000, 5, 2001), 0},
		{"the owner, claiming root", of(2000, 4, 5), sys(t, 0, 0, 0), sys(t, 2000, 2001, 4, 5), 0},
		{"the owner, claiming a group", of(2000, 4, 5), sys(t, 2000, 0), sys(t, 2000, 2001, 4, 5), 0},
		{"the owner, claiming another group besides", of(2000, 4, 5), sys(t, 2000, 2001, 4, 6), sys(t, 2000, 2001, 4, 5), 0},
		{"the owner of many groups", of(2000, many...), sys(t, 0, 0), sys(t, 2000, 2001, many[:16]...), 0},
		{"the owner, claiming nothing", of(2000), none, none, 0},
		{"the owner, with proof", of(2000), gss, gss, 0},
		{"the owner, with a shorthand", of(2000), short, none, oncrpc.AuthRejectedCred},
		{"the owner, by what nobody knows", of(2000), unknown, none, oncrpc.AuthTooWeak},
		{"the owner, claiming nonsense", of(2000), oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorSys, Body: []byte{1}}, none, oncrpc.AuthBadCred},
		{"somebody of this machine", somebody, sys(t, 7, 8), none, 0},
		{"somebody, with proof", somebody, gss, gss, 0},
		{"somebody, with a shorthand", somebody, short, none, oncrpc.AuthRejectedCred},
	} {
		r := &oncrpc.Request{Call: oncrpc.Call{XID: 7, Cred: tt.cred}, Origin: tt.from, Args: []byte("arguments")}
		got, err := withIdentity(r)
		if tt.reject != 0 {
			if !errors.Is(err, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: tt.reject}) {
				t.Errorf("%s: %v, want %v", tt.what, err, tt.reject)
			}
			continue
		}
		if err != nil || got.Cred.Flavor != tt.want.Flavor || !bytes.Equal(got.Cred.Body, tt.want.Body) || got.XID != 7 || string(got.Args) != "arguments" {
			t.Errorf("%s: %+v, %v, want %+v", tt.what, got, err, tt.want)
		}
		if r.Cred.Flavor != tt.cred.Flavor {
			t.Errorf("%s: the transport's call was changed", tt.what)
		}
	}
}

// The server gets the owner's identity, in calls of NFS and of MOUNT, wherever MOUNT is.
func TestTheServerBehindHearsOfTheOwner(t *testing.T) {
	owner := &origin.Origin{Local: true, User: &origin.User{UID: 2000, GID: 2001}}
	r := newRig(t, Config{})
	c := dial(t, serveTo(t, owner, r.Gateway))
	claim := oncrpc.Call{XID: 7, Prog: nfs.Program, Vers: nfs.V3, Proc: 3, Cred: sys(t, 0, 0, 0)}
	message, err := claim.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	c.send(append(message, words(1, 2)...))
	s := accept(t, r.behind)
	got := s.receive()
	var passed oncrpc.Call
	at, err := passed.Parse(got)
	var sysGot oncrpc.AuthSys
	if err != nil || passed.XID != 7 || sysGot.Parse(passed.Cred.Body) != nil || sysGot.UID != 2000 || sysGot.GID != 2001 || len(sysGot.GIDs) != 0 {
		t.Errorf("the server got %+v, %v", sysGot, err)
	}
	if !bytes.Equal(got[at:], words(1, 2)) {
		t.Errorf("the arguments are %x", got[at:])
	}
	s.send(reply(7, 5))
	if b := c.receive(); !bytes.Equal(b, reply(7, 5)) {
		t.Errorf("the client got %x", b)
	}

	came := make(chan oncrpc.AuthSys, 1)
	behind := serve(t, oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		var a oncrpc.AuthSys
		if err := a.Parse(r.Cred.Body); err != nil {
			return nil, err
		}
		came <- a
		e := r.Accept(0)
		return e.Finish()
	}))
	host, port := split(t, behind)
	m, err := NewMount(MountConfig{Host: host, Port: port})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	mnt := &oncrpc.Request{Call: oncrpc.Call{Prog: nfs.MountProgram, Vers: 3, Proc: 1, Cred: sys(t, 0, 0)}, Origin: owner}
	if _, err := m.ServeRPC(t.Context(), mnt); err != nil {
		t.Fatal(err)
	}
	if a := nettest.Await(t, came); a.UID != 2000 || a.GID != 2001 {
		t.Errorf("MOUNT got %+v", a)
	}
}

// Another user that sends the same call does not get the old connection's port.
func TestClientsOnThisMachineAreToldApartByTheirUsers(t *testing.T) {
	here := func(uid uint32) *oncrpc.Request {
		return &oncrpc.Request{Remote: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(uid)}, Origin: &origin.Origin{Local: true, User: &origin.User{UID: uid}}}
	}
	first, again := clientOf(here(1)), clientOf(here(1))
	if first == clientOf(here(2)) || first != again {
		t.Error("users are not told apart")
	}
	one, other := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 7}
	if clientOf(&oncrpc.Request{Remote: one}) == clientOf(&oncrpc.Request{Remote: other}) {
		t.Error("hosts are not told apart")
	}
}
