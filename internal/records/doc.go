// Package records is a second LLP, for tests: each DDP segment travels as a record of
// a length and the segment's octets, without CRC and markers, through memory. The
// tests of package verbs run over it as over MPA, which shows that nothing from ddp
// up depends on the LLP's being MPA.
//
// Unlike MPA over a connection it has no start-up, no fence, and one size of segment.
// It writes from the consumer's memory without copying it first, and without waiting.
package records
