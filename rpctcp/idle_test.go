package rpctcp

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/oncrpc"
)

// Claims: S-6.4.2-1
func TestIdleConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, ServerConfig{Idle: time.Minute, Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			time.Sleep(150 * time.Second)
			return echo(ctx, r)
		})})
		p, done := serveOne(t, s)
		start := time.Now()
		time.Sleep(30 * time.Second)
		p.send(callOf(1, "args"))
		p.expect(replyOf(1, "args")) // no end while a call is executed
		if err := <-done; err != nil {
			t.Errorf("the connection ended with %v, want good order", err)
		}
		if took := time.Since(start); took != 4*time.Minute {
			t.Errorf("the connection ended after %v, want a minute after the reply", took)
		}
		p.Close()
	})
}

func TestANewConnectionTakesThePlaceOfTheOneIdleLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := newServer(t, ServerConfig{Connections: 3, Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			if string(r.Args) == "hold" {
				<-release
			}
			return echo(ctx, r)
		})})
		var peers []*peer
		var ends []<-chan error
		connect := func() {
			synctest.Wait()
			p, done := serveOne(t, s)
			peers, ends = append(peers, p), append(ends, done)
			synctest.Wait()
			time.Sleep(time.Second)
		}
		connect()
		connect()
		connect()
		peers[0].send(callOf(1, "hold"))
		peers[1].send(callOf(1, "args"))
		peers[1].expect(replyOf(1, "args"))
		connect() // in place of 2, which has never called
		if err := <-ends[2]; !errors.Is(err, fairness.ErrEvicted) {
			t.Errorf("the idle connection ended with %v, want %v", err, fairness.ErrEvicted)
		}
		peers[1].send(callOf(2, "hold"))
		peers[3].send(callOf(1, "hold"))
		connect() // for which there is no place
		if err := <-ends[4]; !errors.Is(err, fairness.ErrFull) {
			t.Errorf("the connection too many ended with %v, want %v", err, fairness.ErrFull)
		}
		close(release)
		peers[0].expect(replyOf(1, "hold"))
		for _, p := range peers {
			p.Close()
		}
	})
}
