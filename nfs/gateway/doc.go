// Package gateway passes NFS calls of any version from one transport to another:
// from RDMA to TCP, or from TCP to RDMA, so that a server that speaks the one can
// be mounted over the other.
//
// A [Gateway] is an [oncrpc.Handler], to be put behind the server of a transport,
// and calls a [Backend]. It does not know files: calls and replies pass through
// it whole, with the credentials and verifiers of whatever flavor that they came
// with, but for those of callers on this machine. What travels by chunks on a side with RDMA is that side's affair; the
// gateway only says where the data of READ are to go (nfs.Bindings).
//
// # Who calls
//
// The server trusts this host, and so a gateway must not be asked by users of this
// machine to be others. Whoever owns the socket of a caller on this machine
// ([oncrpc.Request.Origin], as [origin.Look] finds it out) is who its AUTH_SYS
// credentials say when they are passed on, with groups of that user's alone. Only
// root may be anybody. Where nobody looked they become AUTH_NONE. RPCSEC_GSS proves
// itself and passes. Who may call at all is for others to say: see mount.Access.
//
// # Connections
//
// There is one connection behind for each in front, made when the first call
// comes and closed with the one in front. Sessions, client ids and callbacks of
// NFS version 4 depend on connections. When the one behind is lost, as by a
// restart of the server, it is made anew, and what had no reply is sent again;
// the one in front stays, and its client sees nothing but time pass.
//
// Servers remember what they answered to calls that must not be executed twice,
// and find it by XID and by where the call comes from. So a call keeps its XID,
// and a client in front that has lost its connection and repeats calls over the
// next gets the same port behind as before.
//
// # What does not pass
//
// Callbacks of NFS versions 4.1 and later come back over the connection behind
// and go on over the one in front (RFC 8167). A server of NFS version 4.0 makes a
// connection of its own to the address that the client told it (RFC 7530 §3.3.3,
// RFC 8267 §6.5.1), which passes the gateway by; where it cannot, there are no
// delegations and nothing else is missing.
//
// To the server all calls come from the gateway's address: that has to be
// allowed to mount, and mostly to come from a port below 1024. Locks of NFS
// version 3 need a program of their own, NLM, whose server calls back by address:
// mount with the option nolock, or version 4.
//
// TLS (RFC 9289) is refused, as it would have to end at the gateway.
package gateway
