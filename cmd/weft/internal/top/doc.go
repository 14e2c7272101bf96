// Package top is what `weft top` shows: connections, rates and latencies of a running
// command, from the metrics that it serves with --metrics.
package top
