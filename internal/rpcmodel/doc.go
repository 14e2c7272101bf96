// Package rpcmodel checks clients and servers of package rpcrdma against each
// other and against a model: its tests make random calls of a program whose
// results depend on every octet of the arguments, over several connections at a
// time, and compare every octet that comes back.
//
// Calls are of lengths around all thresholds, with arguments cut anywhere, with
// items and results in any number, none and of no octets too, with memory for
// results or without, through bindings or without. Calls are given up and
// connections cut at random points. Besides clients there are requesters that
// send chunk lists no client of ours sends, and that RFC 8166 allows.
//
// A failure prints the seed and the number of the step. To repeat it, or to go on
// for longer:
//
//	go test ./internal/rpcmodel -model.seed 7 -model.steps 10000
package rpcmodel
