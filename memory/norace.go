// This file is for builds without the race detector.

//go:build !race

package memory

const raceEnabled = false
