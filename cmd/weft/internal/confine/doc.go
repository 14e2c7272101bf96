// Package confine starts a process that may use a few places of the file system only, by
// Linux's landlock(7).
//
// A process can't restrict itself well in Go: landlock restricts one thread, and what a
// thread starts. So another process starts it, from a thread that is restricted before
// and used for nothing else. This also lets a later process have more places, which no
// restricted process could give itself.
package confine
