// Package rpcmodel tests clients and servers of package rpcrdma against each other and
// against a model. The tests make random calls of a program whose results depend on
// every octet of the arguments, over several connections at a time, and compare every
// octet of the results.
//
// The lengths of calls are around all thresholds. Arguments are split anywhere; there
// are any number of items and results, also none and empty ones; with and without memory
// for results, with and without bindings. Calls are canceled and connections cut at
// random points. Besides clients there are requesters that send chunk lists that
// RFC 8166 allows and that Weft's client never sends.
//
// A failure prints the seed and the number of the step. To repeat it, or for a longer
// run:
//
//	go test ./internal/rpcmodel -model.seed 7 -model.steps 10000
package rpcmodel
