// Package nfs is NFS as far as messages go: NFS version 3 (RFC 1813) with its
// MOUNT protocol, and the upper-layer bindings that say which data of NFS
// versions 2, 3 and 4 travel by RDMA (RFC 8267, RFC 5667).
package nfs
