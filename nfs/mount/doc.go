// Package mount is the server of the MOUNT protocol, by which clients of NFS
// version 3 come by the handle of a folder (RFC 1813 §5 and Appendix I), and the
// list of the clients that may. [Access] says who may use a server at all.
package mount
