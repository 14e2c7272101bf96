// What a figure is: its unit, and which way is better.

package main

// A Metric is what a group of workloads is measured by.
type Metric string

const (
	Bandwidth   Metric = "bandwidth"    // octets a second, one way
	MessageRate Metric = "message rate" // messages a second, one way
	HalfTrip    Metric = "half round trip"
	RoundTrip   Metric = "round trip"      // both in nanoseconds, median of the sample
	ConnectRate Metric = "connection rate" // connections made and ended a second
	Memory      Metric = "memory"          // octets at an end, of each connection
	RegionTime  Metric = "registration"    // nanoseconds for one and its end

	// These are of the same samples as other metrics, for goals.
	CPUTime     Metric = "CPU time"     // nanoseconds a message, both ends together
	LongestWait Metric = "longest wait" // of any connection, in median waits

	FileBandwidth Metric = "file bandwidth" // octets a second
	FileRate      Metric = "file rate"      // operations a second
)

// unit of the metric's figures.
func (m Metric) unit() string {
	switch m {
	case Bandwidth, FileBandwidth:
		return "bytes_per_second"
	case MessageRate:
		return "messages_per_second"
	case FileRate:
		return "operations_per_second"
	case ConnectRate:
		return "connections_per_second"
	case Memory:
		return "bytes"
	case LongestWait:
		return "median_waits"
	}
	return "nanoseconds"
}

// higherIsBetter says which way a ratio should go.
func (m Metric) higherIsBetter() bool {
	return m == Bandwidth || m == MessageRate || m == ConnectRate || m.files()
}

// files says that the metric is about files.
func (m Metric) files() bool { return m == FileBandwidth || m == FileRate }

// latency says that the metric's samples have percentiles.
func (m Metric) latency() bool { return m == HalfTrip || m == RoundTrip }

// of is the sample's figure in the metric's unit.
func (m Metric) of(s Sample, size int) float64 {
	switch m {
	case Bandwidth, FileBandwidth:
		return float64(s.Messages) / s.Elapsed.Seconds() * float64(size)
	case MessageRate, FileRate, ConnectRate:
		return float64(s.Messages) / s.Elapsed.Seconds()
	case Memory:
		return float64(s.Octets)
	case RegionTime:
		return float64(s.Elapsed.Nanoseconds()) / float64(max(1, s.Messages))
	case CPUTime:
		return float64(s.CPU.Nanoseconds()) / float64(max(1, s.Total))
	case LongestWait:
		return float64(s.Longest) / float64(max(1, s.Trips[0]))
	}
	return m.trip(s.Trips[0].Nanoseconds())
}

// trip is a round trip as the metric counts it.
func (m Metric) trip(ns int64) float64 {
	if m == HalfTrip {
		return float64(ns) / 2
	}
	return float64(ns)
}
