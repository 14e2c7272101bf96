// This file sets the options of sockets and protocols.

package perf

import (
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
)

// Tuning are the settings that both ends of a connection share.
type Tuning struct {
	// Congestion is the congestion control of all connections, plain TCP's
	// and RDMA's alike; empty leaves the system's.
	Congestion string `json:"congestion,omitempty"`
	// SendBuffer and ReceiveBuffer are those of the sockets of all connections,
	// in bytes; 0 leaves them to the system.
	SendBuffer    int `json:"send_buffer,omitempty"`
	ReceiveBuffer int `json:"receive_buffer,omitempty"`
	// Markers asks for MPA's markers in both directions.
	Markers bool `json:"markers,omitempty"`
	// MaxULPDU is the largest ULPDU in bytes; 0 follows the path's segment size.
	MaxULPDU int `json:"max_ulpdu,omitempty"`
	// Spin is how long a waiter polls a completion queue and its RDMA connection
	// before it sleeps.
	Spin time.Duration `json:"spin_ns,omitempty"`
}

// socket are the options of all connections.
func (t Tuning) socket() cm.Socket {
	return cm.Socket{Congestion: t.Congestion, SendBuffer: t.SendBuffer, ReceiveBuffer: t.ReceiveBuffer}
}

// mpa is the start-up of an RDMA connection.
func (t Tuning) mpa(crc bool) mpa.Config {
	return mpa.Config{
		NoCRC:    !crc,
		Markers:  t.Markers,
		MaxULPDU: t.MaxULPDU,
	}
}
