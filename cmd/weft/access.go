// The flags for access control of a server, and what a server prints about it at the
// start.

package main

import (
	"fmt"
	"net"
	"os"
	"os/user"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weft-rdma/weft/cmd/weft/internal/fileserver"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/origin"
)

// allowed is the values of --allow.
type allowed []string

func (a *allowed) register(f *pflag.FlagSet, standard string) {
	f.StringSliceVar((*[]string)(a), "allow", nil, fmt.Sprintf("serve only this `NETWORK`, such as 192.0.2.0/24, or host; may be repeated (default: %s)", standard))
}

// parse returns the networks of the flag, and the names of certificates.
func (a allowed) parse() (list mount.Allow, names []origin.Name, err error) {
	for _, s := range a {
		if origin.IsName(s) {
			name, err := origin.ParseName(s)
			if err != nil {
				return nil, nil, usagef("--allow: %v", err)
			}
			names = append(names, name)
			continue
		}
		p, err := mount.ParseAllow(s)
		if err != nil {
			return nil, nil, usagef("--allow: %v", err)
		}
		list = append(list, p)
	}
	return list, names, nil
}

// admit returns the function that admits connections from these networks, or without
// the flag from everywhere. This machine is a host like others.
func (a allowed) admit() (origin.Admit, error) {
	list, names, err := a.parse()
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		return nil, usagef("--allow %v: names of certificates are for serve and gateway", names[0])
	}
	return func(nc net.Conn) (*origin.Origin, error) {
		if !list.Allows(nc.RemoteAddr()) {
			return nil, fileserver.Advised(mount.ErrHost)
		}
		return origin.Everybody(nc)
	}, nil
}

// access holds the flags that say who may use a file server.
type access struct {
	allow                 allowed
	allowOthers, insecure bool
}

func (a *access) register(f *pflag.FlagSet) {
	a.allow.register(f, "all; unless root serves, no other machine")
	f.Lookup("allow").Usage = "serve only this `HOST`: a network, such as 192.0.2.0/24, an address, or with --tls a name in a certificate: dns:NAME, ip:ADDR or cn=NAME; may be repeated (default: all; unless root serves, no other machine)"
	f.BoolVar(&a.allowOthers, "allow-others", false, "unless root serves, serve all users of this machine, not only the same user and root")
	f.BoolVar(&a.insecure, "insecure", false, "over TCP, accept calls of other machines from any port, not only below 1024")
}

// configure sets who may use a file server.
func (a *access) configure(cfg *fileserver.Config) (err error) {
	cfg.Personal, cfg.AllowOthers, cfg.Insecure = mount.Personal(), a.allowOthers, a.insecure
	cfg.Allow, cfg.Names, err = a.allow.parse()
	return err
}

// An audience describes who reaches a server, and what they may do there.
type audience struct {
	*access
	personal bool       // all act as the one who serves
	blind    bool       // the system does not say who calls
	asServer string     // what those may who do
	asClaims string     // what other machines may where they do not
	at       []net.Addr // where it listens; nil is nowhere
	rdma     bool       // others reach it over RDMA
}

// audience returns the audience of a server.
func (a *access) audience(server *fileserver.Server, asServer, asClaims string) audience {
	return audience{
		access: a, personal: mount.Personal(), blind: runtime.GOOS != "linux", asServer: asServer, asClaims: asClaims,
		at: []net.Addr{server.RDMA(), server.TCP()}, rdma: exposed(server.RDMA()),
	}
}

// userName returns the name of the user of this process.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid %d", os.Geteuid())
}

// warnings says which other users and machines may use the server.
func (a audience) warnings() (lines []string) {
	from := "any caller from " + strings.Join(a.allow, ", ")
	if len(a.allow) == 0 {
		from = "any caller that reaches this machine"
	}
	switch {
	case a.personal && a.allowOthers:
		lines = append(lines, "every user of this machine may "+a.asServer)
	case a.blind:
		lines = append(lines, "callers on this machine are not served, because this system does not report who they are: --allow-others admits all of them")
	}
	switch {
	case !slices.ContainsFunc(a.at, exposed):
	case a.personal && len(a.allow) == 0:
		lines = append(lines, "other machines are not served: --allow NETWORK admits them")
	case a.personal:
		lines = append(lines, from+" may "+a.asServer, a.ports())
	default:
		lines = append(lines, from+" may "+a.asClaims, a.ports())
	}
	return lines
}

// ports says what the port of a caller proves.
func (a audience) ports() string {
	switch {
	case a.insecure:
		return "no user of those machines is authenticated, whatever the port: leave out --insecure to require ports below 1024 over TCP"
	case a.rdma && (a.personal || a.asServer == a.asClaims): // where there is no --squash
		return "over TCP they must call from ports below 1024, which take root there; over RDMA any user there may call, from any port: restrict access with --allow"
	case a.rdma:
		return "over TCP they must call from ports below 1024, which take root there; over RDMA any user there may call, from any port: restrict access with --allow and --squash"
	}
	return "they must call from ports below 1024, which take root there: --insecure accepts any port"
}
