// Package tlsid makes TLS configurations from certificate files: [Open] reads a
// certificate, its key and the authorities, and an [Identity] makes configurations of
// them for servers and clients. It reads the files again when they change, without a
// restart. [NewAuthority] makes certificates, for trying and for small installations.
//
// A file of authorities may also contain certificates of peers themselves: those peers
// are then trusted whoever signed their certificates, and nobody else is. Two sides
// that do this with each other's certificates pin each other. Names and times of validity
// are checked in any case.
//
// Applications choose the ALPN protocol: "iwarp" for iWARP (docs/tls.md), "sunrpc"
// for RPC with TLS (RFC 9289 §5.1.2).
package tlsid
