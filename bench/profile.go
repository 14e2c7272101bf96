// CPU profiles of single samples, for finding out where the time goes.

package main

import (
	"os"
	"runtime/pprof"
)

// profile starts a CPU profile into the named file and returns what ends it.
// With no name it does nothing.
func profile(name string) (stop func() error, err error) {
	if name == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
