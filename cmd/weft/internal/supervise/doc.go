// Package supervise runs a server in a process of its own, which is confined to a few places
// of the file system. The supervisor itself serves nothing and reads nothing of peers. It
// keeps the sockets: when the server is to have more places, another process is started
// with the same sockets, and the first one answers what it has begun.
package supervise
