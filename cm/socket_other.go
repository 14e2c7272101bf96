// This file is for systems on which socket options cannot be set.

//go:build !unix && !windows

package cm

import "errors"

var (
	sendBuffer    = bufferKind{name: "send buffer", limit: "what the system chooses"}
	receiveBuffer = bufferKind{name: "receive buffer", limit: "what the system chooses"}
)

func setBufferOption(uintptr, bufferKind, int) error { return errors.ErrUnsupported }

// getBuffer returns 0: these systems do not report it.
func getBuffer(uintptr, bufferKind) (int, error) { return 0, nil }
