// Package fileserver is what `weft serve` runs: NFS version 3 over RDMA and over
// TCP, and what clients need beside it, which is MOUNT to get the first handle by
// and a port mapper to find MOUNT by.
package fileserver
