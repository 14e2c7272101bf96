// Package verbsmodel checks package verbs against a small reference model: its
// tests make random sequences of verbs and work requests, with two to four
// queue pairs on two RNICs, and compare states, memory, completions and events
// with what the model says must have come of each step.
//
// The model executes one work request after the other, at once, as the Verbs
// describe their outcome; it knows nothing of segments, goroutines or time. A
// step of the test is a list of requests on one queue pair, or on two at a time
// that touch disjoint memory, so that its outcome does not depend on how the
// work of the two interleaves.
//
// A failure prints the seed and the number of the step. To repeat it, or to go
// on for longer:
//
//	go test ./internal/verbsmodel -model.seed 7 -model.steps 100000
package verbsmodel
