// Package capture records what passes over a net.Conn as a packet capture that
// Wireshark opens: pcapng with made-up Ethernet, IP and TCP headers around the
// octets that were really read and written, start-up frames included. It needs
// no privileges and works with any connection, in memory or under TLS too.
//
//	w, err := capture.Create("file.pcapng") // or NewWriter, to any io.Writer
//	nc = capture.Conn(nc, w) // before the first octet
//	...
//	err = w.Close() // tells whether the file is whole
//
// What is true in the capture: the octets, their order in each direction, the
// times at which this program handed them over or got them, and addresses and
// ports where the connection has those of TCP. What is made up: the division
// into segments (one for each Read and Write of up to 65495 octets), sequence
// numbers, windows and acknowledgements. A segment written is recorded before
// it is handed over, so that no answer comes before its question.
package capture
