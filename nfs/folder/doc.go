// Package folder serves a folder of this machine by NFS version 3 (RFC 1813).
package folder
