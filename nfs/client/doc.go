// Package client reads, writes and changes what an NFS version 3 server exports.
package client
