// Package fairness divides the resources of a server among its connections: places
// ([Places]), memory for messages ([Memory]), and lines of the log ([Log]). Each has a
// hard limit, and is divided by [origin.Share] first: whatever the connections of one
// share do, there is room for those of another. Within a share, and among shares that
// have the same amount, idle connections are evicted first.
//
// The decisions are pure functions: choose for places, evictees and Memory.next for
// memory.
package fairness
