// Registration of memory, and the map insert that it is set against: what a program pays
// that registers the buffer of each request, and not a pool of them once.

package main

import (
	"context"
	"runtime/debug"

	"github.com/weft-rdma/weft/verbs"
)

// registers registers and deallocates memory, one after the other, until the time is up.
func (e *weftEnd) registers(job Job) (Sample, error) {
	buffer := make([]byte, job.Workload.Size)
	if len(buffer) >= blockSize {
		// It must not stay: the garbage collector of later samples would rest longer.
		defer debug.FreeOSMemory()
	}
	run := newStopwatch(job)
	for !run.over() {
		for range run.stride(1) {
			mr, err := e.pd.Register(buffer, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite)
			if err != nil {
				return Sample{}, err
			}
			if err := mr.Deallocate(); err != nil {
				return Sample{}, err
			}
			run.add(1)
		}
	}
	return run.stop(), nil
}

// A goMap does samples with a map of Go's, in the initiator alone.
type goMap struct{ unverified }

func (goMap) prepare(context.Context, Job) (Ready, serve, error) {
	return Ready{}, func(over <-chan struct{}) (Served, error) {
		<-over
		return Served{}, nil
	}, nil
}

// mapEntries is how many entries the map has at most.
const mapEntries = 1 << 12

// initiate inserts keys that the map does not have, until the time is up. The map has room
// for them from the beginning, and is emptied when it is full.
func (goMap) initiate(_ context.Context, job Job, _ Ready) (Sample, error) {
	value := new(int)
	m := make(map[uint32]*int, mapEntries)
	run := newStopwatch(job)
	for key := uint32(0); !run.over(); {
		for range run.stride(1) {
			m[key*2654435761] = value
			key++
			run.add(1)
		}
		if len(m) >= mapEntries {
			clear(m)
		}
	}
	return run.stop(), nil
}
