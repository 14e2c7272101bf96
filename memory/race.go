// This file is for builds with the race detector.

//go:build race

package memory

const raceEnabled = true
