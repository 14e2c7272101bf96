// Package capture records the traffic of a net.Conn as a packet capture for Wireshark:
// pcapng with synthetic Ethernet, IP and TCP headers around the octets that were read and
// written, start-up frames included. It needs no privileges and works with any
// connection, also in memory or below TLS.
//
//	w, err := capture.Create("file.pcapng") // or NewWriter, to any io.Writer
//	nc = capture.Conn(nc, w) // before the first octet
//	...
//	err = w.Close() // an error means that the file is incomplete
//
// Real in the capture are the octets, their order in each direction, the times at which
// this program read or wrote them, and the addresses and ports of a TCP connection.
// Synthetic are the segments (one for each Read and Write of up to 65495 octets),
// sequence numbers, windows and acknowledgements. A segment is recorded before it is
// written, so that no response precedes its request.
package capture
