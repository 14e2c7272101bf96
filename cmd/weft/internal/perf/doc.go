// Package perf measures RDMA between two processes beside plain TCP between
// the same two: what `weft perf` does.
//
// A driver decides what is measured and holds the stopwatch; a peer takes the
// other end. Three kinds of connection run between them, all to the peer's one
// address: a control connection with lines of JSON, one or several for plain
// TCP, and as many RDMA connections for each setting of the CRC. The first byte
// tells them apart, so that the peer can hear everybody at once and let drivers
// take turns. What a driver can have of a peer is bounded: see [MaxConnections],
// [DepthLimit] and [SizeLimit].
//
// # What is timed
//
// Bandwidth is a fixed number of messages: from the first post until the
// driver knows that the last one is at its place, that is until its RDMA Reads
// and atomics have completed, or until the peer has answered behind the last
// Write or Send. Sends and Immediate Data go by credits, as there must be a
// receive for each. Plain TCP is a write call a message, read in bulk at the
// other end, until the peer has answered behind the last byte.
//
// Latency is half a round trip of a Send, of Immediate Data, or of a Write
// with a Send of no bytes behind it that announces it; and a whole
// round trip of an RDMA Read or atomic. Plain TCP is half a round trip of the
// same size, or for a read a request of 16 bytes and its answer, whole.
//
// Several connections are all in use at the same time, each by a goroutine, or by that of a
// consumer which several share with their completion queue, and
// for as many messages: bandwidth is theirs together, until the last one is done,
// and latency is that of every message while the others go on.
//
// Each combination is measured in several rounds, RDMA and TCP by turns within
// each, so that what disturbs the machine disturbs both. What is reported is
// the median of the rounds; percentiles are those of a round before, and
// histograms count all rounds together. One figure takes half a minute of a round
// at most, however long the measurement may be.
//
// A run over a long time measures each figure for an interval, again and again, so that the
// report shows bandwidth over time. [Diff] compares two reports: what differs by more than the
// rounds of each do.
//
// # What is verified
//
// Before anything is timed, every operation moves messages between slots of
// their own, each with its own pattern, and the receiving end compares every
// byte. In timed runs all messages share one place, as in perftest, and the
// receiving end compares it when the clock has stopped; atomics and Immediate
// Data carry a count, of which each value is checked.
package perf
