// Package ddp is Direct Data Placement over reliable transports (RFC 5041): it
// cuts messages into segments that say where their payload belongs, and at the
// other end places each segment's payload there and nowhere else.
//
// A message goes to a Tagged Buffer, which the Data Sink advertised by an STag
// and whose octets the Data Source chooses by tagged offset (TO); or to an
// Untagged Buffer, the next one posted to a queue, found by queue number (QN),
// message sequence number (MSN) and message offset (MO).
//
//   - [Tagged] and [Untagged] are the two headers.
//   - [Outbound] cuts one message into segments; [Sequence] numbers messages.
//   - [Receiver] checks segments, has them placed and delivers messages. It asks
//     the protocol above, its [ULP], for buffers and memory, and takes segments
//     from the [LLP] below, whole or while they are still arriving.
//   - [Fault] is the layers' common vocabulary for refused accesses to memory,
//     and [Error] what is wrong with a segment, in the numbers of section 7.2.
//
// Protection is the ULP's: it is asked for memory once for each segment, or for
// each part of one that arrived, and holds the memory only until the octets are
// in place. Nothing here waits, allocates in a message's way, or knows what an
// octet of RsvdULP means.
package ddp
