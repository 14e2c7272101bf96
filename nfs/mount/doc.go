// Package mount serves the MOUNT protocol, which gives clients of NFS version 3 the
// handle of a directory (RFC 1813 §5 and Appendix I). [Access] decides who may use a
// server.
package mount
