package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const (
	saidBandwidth = `---------------------------------------------------------------------------------------
 Data ex. method : rdma_cm
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      20000            5628.20            1000.00 		   0.003155
---------------------------------------------------------------------------------------
`
	saidLatency = ` #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] 
 64      2000          4.83           16397.34      5.50     	       14.00       	95.30  		50.25   		1906.50
`
)

func TestTheFiguresOfPerftestAreRead(t *testing.T) {
	stream := Job{Workload: raw(Stream, gatherSize).with(Perftest, Write)}
	s, err := perftestSample(stream, saidBandwidth)
	if err != nil || s.Messages != 20000 || s.Total != 20000 || s.Elapsed != 1250*time.Millisecond {
		t.Errorf("%+v, %v: expected 20000 messages in 1.25s, which are 1000 MiB a second", s, err)
	}
	trips := Job{Workload: raw(PingPong, small).with(Perftest, Send)}
	s, err = perftestSample(trips, saidLatency)
	want := Sample{
		Messages: 2000, Total: 2000, Elapsed: 56 * time.Millisecond,
		Trips: [4]time.Duration{11 * time.Microsecond, 0, 100500 * time.Nanosecond, 3813 * time.Microsecond},
	}
	if err != nil || s != want {
		t.Errorf("%+v, %v, expected %+v", s, err, want)
	}
}

func TestWithoutFiguresASampleOfPerftestFails(t *testing.T) {
	for _, shape := range []Shape{Stream, PingPong} {
		job := Job{Workload: Workload{Peer: Perftest, Shape: shape, Op: Send, Size: small}}
		for _, said := range []string{"", "#bytes\n", "#bytes\n 64 a b c d e f g h\n", " Couldn't connect to 127.0.0.1:1\n"} {
			if _, err := perftestSample(job, said); !errors.Is(err, errNoFigures) {
				t.Errorf("%s, %q: %v", shape, said, err)
			}
		}
	}
}

func TestASampleWithoutAClockIsTakenAgain(t *testing.T) {
	stream := Job{Workload: raw(Stream, gatherSize).with(Perftest, Write)}
	trips := Job{Workload: raw(PingPong, small).with(Perftest, Send)}
	for _, figure := range []string{"0.00", "inf", "-1.00", "nan"} {
		if _, err := perftestSample(stream, strings.Replace(saidBandwidth, "1000.00", figure, 1)); !errors.Is(err, errNoClock) {
			t.Errorf("a bandwidth of %s: %v", figure, err)
		}
		if _, err := perftestSample(trips, strings.Replace(saidLatency, "14.00", figure, 1)); !errors.Is(err, errNoClock) {
			t.Errorf("a latency of %s: %v", figure, err)
		}
	}
	other := errors.New("another failure")
	for _, v := range []struct {
		fails []error
		took  int
		want  error
	}{
		{[]error{nil}, 1, nil},
		{[]error{errNoClock, errNoClock, nil}, 3, nil},
		{[]error{other, nil}, 1, other},
		{[]error{errNoClock, other, nil}, 2, other},
		{[]error{errNoClock, errNoClock, errNoClock, errNoClock, nil}, mostTries, errNoClock},
	} {
		took := 0
		_, err := repeated(func() (Sample, error) {
			took++
			return Sample{}, v.fails[took-1]
		})
		if took != v.took || !errors.Is(err, v.want) {
			t.Errorf("%v: %v after %d samples, expected %v after %d", v.fails, err, took, v.want, v.took)
		}
	}
}

func TestTheProgramOfAWorkload(t *testing.T) {
	for w, want := range map[Workload]string{
		raw(Stream, maxSize).with(Perftest, Read): "ib_read_bw",
		raw(PingPong, small).with(Perftest, Send): "ib_send_lat",
	} {
		if got := perftestName(w); got != want {
			t.Errorf("%v: %s, expected %s", w, got, want)
		}
	}
}
