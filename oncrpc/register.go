// This file registers a server's programs with the port mapper of its host.

package oncrpc

import (
	"context"
	"errors"
	"fmt"
)

// Register enters services in the table of the port mapper that c calls. It uses
// rpcbind version 4; where the port mapper has version 2 only, it registers services
// on TCP and UDP over IPv4. Port mappers accept registrations only from their own host,
// and many only from privileged callers. Owner is a name for display.
//
// Services stay registered until [Unregister]. If one cannot be registered, most often
// because another server has registered it, Register removes those before it and returns
// an error that names it.
func Register(ctx context.Context, c Caller, owner string, services []Service) error {
	for i, s := range services {
		ok, err := setService(ctx, c, RpcbSet, owner, s)
		if err == nil && !ok {
			err = errors.New("refused; another server may have registered it, or a privilege is missing")
		}
		if err != nil {
			return errors.Join(fmt.Errorf("oncrpc: program %d version %d on %s cannot be registered: %w", s.Prog, s.Vers, s.Netid, err),
				Unregister(ctx, c, owner, services[:i]))
		}
	}
	return nil
}

// Unregister removes services from the table. It continues after errors, and ignores
// services that are not registered.
func Unregister(ctx context.Context, c Caller, owner string, services []Service) error {
	var errs []error
	for _, s := range services {
		if _, err := setService(ctx, c, RpcbUnset, owner, s); err != nil {
			errs = append(errs, fmt.Errorf("oncrpc: program %d version %d on %s is still registered: %w", s.Prog, s.Vers, s.Netid, err))
		}
	}
	return errors.Join(errs...)
}

// setService calls SET or UNSET, whose procedure numbers are the same in all
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

// protOfNetid is the protocol number of version 2 for a network identifier.
func protOfNetid(netid string) (prot uint32, ok bool) {
	switch netid {
	case NetidTCP:
		return ProtTCP, true
	case NetidUDP:
		return ProtUDP, true
	}
	return 0, false
}

// callBool makes a call whose result is a boolean, and returns that.
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
