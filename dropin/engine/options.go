package main

/*
#define _GNU_SOURCE
#include <stdlib.h>
*/
import "C"

import (
	gocontext "context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"unsafe"

	"github.com/weft-rdma/weft/capture"
	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// This file is what the user asks for with `weft run`, which comes by the environment.

var options struct {
	plain   bool // a peer is not told that this is Weft
	patient bool // a message waits for a receive, in place of ending the stream
	noCRC   bool
	debug   bool
	verbose bool

	socket cm.Socket  // of all connections
	tls    encryption // of all connections

	firstPort, lastPort uint16 // of ports that are given out; 0 leaves them to the system

	pcap *capture.Writer

	log *slog.Logger // of listeners
}

// environment is a variable of the environment. A program that has more rights than who
// started it (set-uid) gets none: files that are written would be its starter's to choose.
func environment(name string) string {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	return C.GoString(C.secure_getenv(c))
}

// readOptions returns the logger that was asked for, or nil.
func readOptions() (*slog.Logger, error) {
	o := &options
	on := func(name string) bool { v := environment(name); return v != "" && v != "0" }
	o.plain, o.patient, o.debug, o.verbose = on("WEFT_PLAIN"), on("WEFT_PATIENT"), on("WEFT_DEBUG"), on("WEFT_VERBOSE")
	o.noCRC = environment("WEFT_CRC") == "off"
	o.socket.Congestion = environment("WEFT_CONGESTION")
	if err := checkSocket(o.socket); err != nil {
		return nil, fmt.Errorf("WEFT_CONGESTION: %w", err)
	}
	if r := environment("WEFT_LISTEN_RANGE"); r != "" {
		if _, err := fmt.Sscanf(r, "%d-%d", &o.firstPort, &o.lastPort); err != nil || o.firstPort == 0 || o.firstPort > o.lastPort {
			return nil, fmt.Errorf("WEFT_LISTEN_RANGE %q: a range of ports is expected, as 7000-7099", r)
		}
	}
	var err error
	if o.tls, err = readTLS(); err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	if name := environment("WEFT_PCAP"); name != "" {
		if o.pcap, err = openRecording(name); err != nil {
			return nil, err
		}
	}
	log := newLogger()
	o.log = newTLSLog(log)
	return log, nil
}

// newLogger returns the logger of --debug, or nil.
func newLogger() *slog.Logger {
	if !options.debug {
		return nil
	}
	level := slog.LevelInfo
	if environment("WEFT_DEBUG") == "2" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// listenConfig is the configuration of a listener.
func listenConfig(start mpa.Config, backlog int) cm.ListenConfig {
	o := &options
	return cm.ListenConfig{
		MPA: start, Backlog: backlog, TLS: o.tls.server, Admit: o.tls.admit(), Wrap: wrap, Socket: o.socket, Logger: o.log,
	}
}

// checkSocket finds out whether the system has what a Socket asks for.
func checkSocket(s cm.Socket) error {
	if s == (cm.Socket{}) {
		return nil
	}
	lc := net.ListenConfig{Control: s.Control}
	ln, err := lc.Listen(gocontext.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	return ln.Close()
}

// wrap is for each connection: it stays with this process, and is recorded if the user
// asked for that.
func wrap(nc net.Conn) net.Conn {
	nc = quiet(nc)
	keepFrom(nc)
	if options.pcap == nil {
		return nc
	}
	return capture.Conn(nc, options.pcap)
}

// finish is for the end of the process: peers are told what has arrived, the recording is
// completed, and the user told what was done.
func finish() {
	works := !failed.Load() // what verbs is asked for may be locked
	if works {
		confirmAll()
	}
	if options.pcap != nil {
		if err := options.pcap.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "weft: recording: %v\n", err)
		}
	}
	if options.verbose && works {
		fmt.Fprintln(os.Stderr, summary(rnic.Stats(), int(queuePairsMade.Load())))
	}
}

// summary is one line about what passed.
func summary(s verbs.RNICStats, pairs int) string {
	persona := "rnic"
	if rcPersona {
		persona = "rc"
	}
	q := &s.QPs
	sent := q.Sends.Octets + q.Writes.Octets + q.PeerReads.Octets
	received := q.Received.Octets + q.PeerWrites.Octets + q.Reads.Octets
	return fmt.Sprintf("weft: %s (%s): %d queue pairs, %d octets sent, %d received; %d requests failed, %d were flushed, %d verbs were refused",
		deviceName(), persona, pairs, sent, received, q.Failed, q.Flushed, refused.Load())
}

func deviceName() string {
	if name := environment("WEFT_DEVICE"); name != "" {
		return name
	}
	return "weft0"
}
