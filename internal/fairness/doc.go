// Package fairness divides what a server has among those who connect: places
// for connections, memory for their messages, and lines of its log. Each has a
// hard limit, and is divided by [origin.Share] first: whatever the connections of
// one share do, there is room for those of another. Within a share, and among
// shares that have as much, those go first who do not come forward.
package fairness
