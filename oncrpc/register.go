// This file is how a server tells the port mapper of its host where its programs
// are.

package oncrpc

import (
	"context"
	"errors"
	"fmt"
)

// Register enters services in the table of the port mapper that c calls: as
// rpcbind version 4, or where there is only version 2, those on TCP and UDP over
// IP version 4. Port mappers take that from callers on their host only, and often
// from privileged ones only. The owner is a name to be shown.
//
// What is registered stays so until [Unregister]. An error says which service
// could not be entered, mostly as another server has registered it; those before
// it have been taken back then.
func Register(ctx context.Context, c Caller, owner string, services []Service) error {
	for i, s := range services {
		ok, err := setService(ctx, c, RpcbSet, owner, s)
		if err == nil && !ok {
			err = errors.New("refused: another server may have registered it, or this one may not")
		}
		if err != nil {
			return errors.Join(fmt.Errorf("oncrpc: program %d version %d on %s cannot be registered: %w", s.Prog, s.Vers, s.Netid, err),
				Unregister(ctx, c, owner, services[:i]))
		}
	}
	return nil
}

// Unregister takes services out of the table again. It goes on where one is not
// there, or fails.
func Unregister(ctx context.Context, c Caller, owner string, services []Service) error {
	var errs []error
	for _, s := range services {
		if _, err := setService(ctx, c, RpcbUnset, owner, s); err != nil {
			errs = append(errs, fmt.Errorf("oncrpc: program %d version %d on %s is still registered: %w", s.Prog, s.Vers, s.Netid, err))
		}
	}
	return errors.Join(errs...)
}

// setService makes a call of SET or UNSET, which have the same numbers in all
// versions.
func setService(ctx context.Context, c Caller, proc uint32, owner string, s Service) (bool, error) {
	e := NewEncoder(nil)
	b := Rpcb{s.Prog, s.Vers, s.Netid, FormatUaddr(s.Addr), owner}
	b.Encode(&e)
	ok, err := callBool(ctx, c, Call{Prog: PmapProg, Vers: RpcbVers4, Proc: proc}, &e)
	prot, has := protOfNetid(s.Netid)
	if accept := (*AcceptError)(nil); !errors.As(err, &accept) || accept.Stat != ProgMismatch || !has {
		return ok, err
	}
	e = NewEncoder(nil)
	m := Mapping{s.Prog, s.Vers, prot, uint32(s.Addr.Port())}
	m.Encode(&e)
	return callBool(ctx, c, Call{Prog: PmapProg, Vers: PmapVers, Proc: proc}, &e)
}

// protOfNetid is the number that version 2 has for a network.
func protOfNetid(netid string) (prot uint32, ok bool) {
	switch netid {
	case NetidTCP:
		return ProtTCP, true
	case NetidUDP:
		return ProtUDP, true
	}
	return 0, false
}

// callBool makes a call whose result is a boolean.
func callBool(ctx context.Context, c Caller, call Call, args *Encoder) (bool, error) {
	b, err := args.Finish()
	if err != nil {
		return false, err
	}
	r, err := c.Call(ctx, &ClientCall{Call: call, Args: [][]byte{b}, MaxReply: 64})
	if err != nil {
		return false, err
	}
	defer r.Release()
	d := NewDecoder(r.Results, "port mapper result")
	ok := d.Bool()
	return ok, d.End()
}
