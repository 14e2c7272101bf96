// Package gateway forwards NFS calls of any version from one transport to another, from
// RDMA to TCP or from TCP to RDMA, so that a server that supports one of them can be
// mounted over the other.
//
// A [Gateway] is an [oncrpc.Handler] for the servers of the transports in front of it,
// where the clients are, and calls a [Backend], the server behind it. It knows nothing
// of files. Calls and replies pass through it unchanged, with credentials and verifiers
// of any flavor; only the credentials of callers on this machine may be replaced.
// Chunks are up to the transport on the RDMA side; the gateway only says where the data
// of READ are to be placed (package nfs/binding).
//
// # Identity
//
// The server trusts this host, so users of this machine must not be able to claim
// another identity through the gateway. The AUTH_SYS credentials of a caller on this
// machine are replaced by those of the user who owns its socket
// ([oncrpc.Request.Origin], see [origin.Look]), unless they name that user and groups of
// that user only. Root may claim to be anybody. If the owner is unknown, the credential
// becomes AUTH_NONE. RPCSEC_GSS authenticates itself and passes. Which clients may call at
// all is up to mount.Access.
//
// # Connections
//
// Each connection in front has one connection behind, which is made for the first call
// and closed with the one in front, because sessions, client ids and callbacks of NFS
// version 4 depend on connections. If the connection behind is lost, as when the server
// restarts, it is made again and calls without a reply are sent again. The connection in
// front stays, and its client notices nothing but a delay.
//
// Servers find retransmitted calls in their duplicate request caches by XID and by the
// caller's address and port. So calls keep their XIDs, and when a client reconnects and
// retransmits calls, its new connection behind uses the same port as the old one.
//
// # Limits
//
// Callbacks of NFS version 4.1 and later arrive on the connection behind and are
// forwarded over the one in front (RFC 8167). A server of NFS version 4.0 connects to an
// address that the client has sent it (RFC 7530 §3.3.3, RFC 8267 §6.5.1), without the
// gateway. If that fails there are no delegations; everything else works.
//
// To the server all calls come from the gateway's address, which has to be allowed to
// mount, and usually from ports below 1024. Locks of NFS version 3 need the program NLM,
// whose server calls back by address: mount with the option nolock, or with version 4.
//
// RPC-with-TLS (RFC 9289) is refused, because TLS would end at the gateway.
package gateway
