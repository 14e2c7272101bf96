// Package turns decides which goroutine waits for the octets of a connection, and receives
// them: leader and followers.
//
// A connection has a reader, the goroutine that receives for as long as the stream lasts.
// If it had to wake a waiting consumer, that would cost more than a short message. So a
// consumer may visit: it polls for octets itself ([Turns.Enter]), or waits for them in the
// reader's place ([Turns.Lead]), and receives them in its own goroutine. It is the leader
// then, and the reader, which sleeps, follows.
//
// # The flow
//
//  1. The reader reads and receives. It counts how often somebody visited while it waited.
//  2. After enough visits in a row the reader sleeps ([Sleep]): the wait is free.
//  3. The next visitor leads ([Come]), finds octets ([Done]), and receives them. And so on.
//  4. The reader is woken when something is left to it ([Recall]), when a visitor goes to
//     sleep ([Quit]) or was interrupted ([CallOff]), when there was no visitor for a
//     millisecond ([Neglect], by the watchdog), and when the connection is closed ([Close]).
//
// The table of states and events is in state.go, a pure function. Of a Source that leaves
// octets to visitors by itself (internal/polled) the reader never sleeps ([Turns.Stay]): the
// states are Reading and Wanted, and only the token is shared with visitors.
//
// # Locking
//
// The state is one atomic word, changed by compare-and-swap as the table says. The token is
// the receiving half: the reader has it while it receives, and releases it while it waits
// or sleeps; a visitor acquires it if it is free, and never waits for it. The holder of
// the token may close the connection, which waits for every call of the source's Read, so
// the reader waits for the token outside of Read. The deadline has a lock under which
// nothing waits; the watchdog holds its own lock while it looks at deadlines.
package turns
