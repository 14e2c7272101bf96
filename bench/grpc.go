// gRPC-Go: a stream of messages one way, messages to and fro on one stream,
// and unary calls. The message is a BytesValue of protobuf, as a service has
// that moves octets.

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A grpcDriver does samples with gRPC-Go.
type grpcDriver struct{ unverified }

// grpcService is what generated code would contain.
var grpcService = grpc.ServiceDesc{
	ServiceName: "bench.Bench",
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Echo", Handler: grpcEcho}},
	Streams: []grpc.StreamDesc{
		{StreamName: "Sink", Handler: grpcSink, ClientStreams: true},
		{StreamName: "Exchange", Handler: grpcExchange, ClientStreams: true, ServerStreams: true},
	},
}

func grpcEcho(_ any, _ context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	m := new(wrapperspb.BytesValue)
	return m, dec(m)
}

// grpcSink takes messages until the end and answers with one.
func grpcSink(_ any, s grpc.ServerStream) error {
	m := new(wrapperspb.BytesValue)
	for {
		switch err := s.RecvMsg(m); {
		case errors.Is(err, io.EOF):
			return s.SendMsg(&wrapperspb.BytesValue{})
		case err != nil:
			return err
		}
	}
}

// grpcExchange returns each message to the sender.
func grpcExchange(_ any, s grpc.ServerStream) error {
	m := new(wrapperspb.BytesValue)
	for {
		switch err := s.RecvMsg(m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := s.SendMsg(m); err != nil {
			return err
		}
	}
}

// grpcLimit is the largest message that either end takes.
const grpcLimit = 2 * maxSize

func (grpcDriver) prepare(ctx context.Context, job Job) (ready Ready, do serve, err error) {
	ln, err := listen(ctx, job)
	if err != nil {
		return ready, nil, err
	}
	over := make(chan struct{})
	server := grpc.NewServer(grpc.MaxRecvMsgSize(grpcLimit), grpc.StatsHandler(&connectionEnd{over: over}))
	server.RegisterService(&grpcService, nil)
	do = func(<-chan struct{}) (Served, error) {
		served := make(chan error, 1)
		go func() { served <- server.Serve(ln) }()
		select {
		case <-over:
		case <-ctx.Done():
		}
		server.Stop()
		return Served{}, errors.Join(context.Cause(ctx), <-served)
	}
	return Ready{Addr: ln.Addr().String()}, do, nil
}

// connectionEnd closes over when the first connection has ended.
type connectionEnd struct {
	once sync.Once
	over chan struct{}
}

func (*connectionEnd) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*connectionEnd) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*connectionEnd) HandleRPC(context.Context, stats.RPCStats)                         {}

func (c *connectionEnd) HandleConn(_ context.Context, s stats.ConnStats) {
	if _, ended := s.(*stats.ConnEnd); ended {
		c.once.Do(func() { close(c.over) })
	}
}

func (grpcDriver) initiate(ctx context.Context, job Job, ready Ready) (s Sample, err error) {
	conn, err := grpc.NewClient("passthrough:///"+ready.Addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(grpcLimit)),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return dial(ctx, addr, job.Congestion)
		}))
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if job.Workload.Shape == Stream {
		return grpcStream(ctx, conn, job)
	}
	return grpcPing(ctx, conn, job)
}

// grpcStream sends messages until the time is up, then waits for the answer.
func grpcStream(ctx context.Context, conn *grpc.ClientConn, job Job) (Sample, error) {
	w := job.Workload
	stream, err := conn.NewStream(ctx, &grpcService.Streams[0], "/bench.Bench/Sink")
	if err != nil {
		return Sample{}, err
	}
	window := make([]byte, w.window())
	fillPattern(window, job.Seed)
	m := new(wrapperspb.BytesValue)
	run := newStopwatch(job)
	for at := 0; !run.over(); {
		for range run.stride(max(1, uint64(w.Size/small))) {
			m.Value = window[at : at+w.Size]
			if err := stream.SendMsg(m); err != nil {
				return Sample{}, err
			}
			run.add(1)
			if at += w.Size; at >= len(window) {
				at = 0
			}
		}
	}
	if err := stream.CloseSend(); err != nil {
		return Sample{}, err
	}
	if err := stream.RecvMsg(new(wrapperspb.BytesValue)); err != nil {
		return Sample{}, err
	}
	return run.stop(), nil
}

// grpcPing sends a message and waits for the answer, until the time is up.
func grpcPing(ctx context.Context, conn *grpc.ClientConn, job Job) (Sample, error) {
	out, in := &wrapperspb.BytesValue{Value: make([]byte, job.Workload.Size)}, new(wrapperspb.BytesValue)
	fillPattern(out.Value, job.Seed)
	turn := func() error { return conn.Invoke(ctx, "/bench.Bench/Echo", out, in) }
	if job.Workload.Op == Message {
		stream, err := conn.NewStream(ctx, &grpcService.Streams[1], "/bench.Bench/Exchange")
		if err != nil {
			return Sample{}, err
		}
		turn = func() error { return errors.Join(stream.SendMsg(out), stream.RecvMsg(in)) }
	}
	run := newStopwatch(job)
	trips := newTrips()
	for t0 := time.Now(); !run.overAt(t0); {
		if err := turn(); err != nil {
			return Sample{}, err
		}
		run.add(1)
		t1 := time.Now()
		trips.add(run, t1.Sub(t0))
		t0 = t1
	}
	s := run.stop()
	s.Trips = trips.percentiles()
	return s, checkPattern(in.Value, job.Seed)
}
