// Package gateway passes NFS calls of any version from one transport to another:
// from RDMA to TCP, or from TCP to RDMA.
package gateway
