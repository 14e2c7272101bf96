//go:build race

package wiretest

const raceDetector = true
