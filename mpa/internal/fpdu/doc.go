// Package fpdu is MPA's framing (RFC 5044 §4): FPDUs with length, PAD, CRC and markers, one by
// one, and in batches that are written together. It does no I/O.
package fpdu
