// Package turns decides who waits for the octets of a connection, and who receives
// them: leader and followers.
//
// A connection has a reader, the goroutine that receives for as long as the stream lasts.
// A consumer would have to be woken by it, which costs more than a short message. So a
// consumer may visit: look for octets itself ([Turns.Enter]), or wait for them in the
// reader's place ([Turns.Lead]), and receive them in its own goroutine. It is the leader
// then, and the reader, who sleeps, follows.
//
// # The flow
//
//  1. The reader reads and receives. It counts how often somebody visited while it waited.
//  2. When that has lasted, the reader sleeps ([Sleep]): the wait is free.
//  3. The next visitor leads ([Come]), finds octets ([Done]), and receives them. And so on.
//  4. The reader is woken when something is left to it ([Recall]), when a visitor goes to
//     sleep ([Quit]) or was interrupted ([CallOff]), when nobody has come for a
//     millisecond ([Neglect], by the watchdog), and when the connection is closed ([Close]).
//
// Which of these follows which is the table in state.go, a pure function.
//
// # Locking
//
// The state is one atomic word, changed by compare and swap with what the table says.
// The token is the receiving half: the reader has it while it receives, and gives it away
// while it waits or sleeps; a visitor takes it if it is there, and never waits for it. Who
// has the token may close the connection, which waits for all that is within the source's
// Read: so the reader waits for the token outside of that. The deadline has a lock that
// nobody waits under; the watchdog holds its own while it looks at deadlines.
package turns
