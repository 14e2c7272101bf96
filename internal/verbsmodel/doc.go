// Package verbsmodel tests package verbs against a small reference model. The tests make
// random sequences of verbs and work requests, with two to four queue pairs on two
// RNICs, and compare states, memory, completions and events after each step with those
// of the model.
//
// The model executes one work request after the other, at once, as the Verbs describe
// the outcome; it has no segments, goroutines or time. A step is a list of requests on
// one queue pair, or on two that use disjoint memory, so that the outcome does not depend
// on how their work interleaves.
//
// A failure prints the seed and the number of the step. To repeat it, or for a longer
// run:
//
//	go test ./internal/verbsmodel -model.seed 7 -model.steps 100000
package verbsmodel
