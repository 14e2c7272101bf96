package verbs

import (
	"math"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/memory"
)

// Every event of Verbs figure 37 exists, under its name and with its kind of resource, and
// names that resource when it is raised. One is Weft's own: figure 37 has no name for a
// message on the receive queue whose offset is wrong or that exceeds 2^32-1 octets.
//
// Claims: V-9.5.3-1
// Claims: V-9.4.2-4
func TestTheEventsAreThoseOfFigure37(t *testing.T) {
	want := map[EventID]struct {
		name     string
		resource Resource
	}{
		EventLLPCloseComplete:  {"LLP Close Complete", ResourceQP},
		EventTerminateReceived: {"Terminate Message Received", ResourceQP},
		EventLLPReset:          {"LLP Connection Reset", ResourceQP},
		EventLLPLost:           {"LLP Connection Lost", ResourceQP},
		EventSegmentSize:       {"LLP Integrity Error: segment size invalid", ResourceQP},
		EventCRC:               {"LLP Integrity Error: invalid CRC", ResourceQP},
		EventBadFPDU:           {"LLP Integrity Error: bad FPDU", ResourceQP},
		EventDDPVersion:        {"Remote Operation Error: invalid DDP version", ResourceQP},
		EventRDMAVersion:       {"Remote Operation Error: invalid RDMA version", ResourceQP},
		EventOpcode:            {"Remote Operation Error: unexpected opcode", ResourceQP},
		EventQueueNumber:       {"Remote Operation Error: invalid DDP queue number", ResourceQP},
		EventReadDisabled:      {"Remote Operation Error: RDMA Read not enabled", ResourceQP},
		EventWriteDisabled:     {"Remote Operation Error: RDMA Write and RDMA Read Response not enabled", ResourceQP},
		EventBadReadRequest:    {"Remote Operation Error: RDMA Read Request too small or offset not zero", ResourceQP},
		EventNoLastBit:         {"Remote Operation Error: no 'L' bit when expected", ResourceQP},
		EventProtectionSTag:    {"Protection Error: invalid STag", ResourceQP},
		EventProtectionBounds:  {"Protection Error: tagged base and bounds violation", ResourceQP},
		EventProtectionAccess:  {"Protection Error: tagged access rights violation", ResourceQP},
		EventProtectionPD:      {"Protection Error: tagged invalid PD", ResourceQP},
		EventProtectionWrap:    {"Protection Error: wrap error", ResourceQP},
		EventBadClose:          {"Bad Close", ResourceQP},
		EventBadLLPClose:       {"Bad LLP Close", ResourceQP},
		EventRQMSNRange:        {"RQ Protection Error: invalid MSN, range not valid", ResourceQP},
		EventRQMSNGap:          {"RQ Protection Error: invalid MSN, gap in MSN", ResourceQP},
		EventRQMessage:         {"RQ Protection Error: invalid message", ResourceQP},
		EventIRRQFull:          {"IRRQ Protection Error: invalid MSN, too many RDMA Read Requests in progress", ResourceQP},
		EventIRRQMSNGap:        {"IRRQ Protection Error: invalid MSN, gap in MSN", ResourceQP},
		EventIRRQMSNRange:      {"IRRQ Protection Error: invalid MSN, range not valid", ResourceQP},
		EventIRRQSTag:          {"IRRQ Protection Error: invalid STag", ResourceQP},
		EventIRRQBounds:        {"IRRQ Protection Error: tagged base and bounds violation", ResourceQP},
		EventIRRQAccess:        {"IRRQ Protection Error: tagged access rights violation", ResourceQP},
		EventIRRQPD:            {"IRRQ Protection Error: tagged invalid PD", ResourceQP},
		EventIRRQWrap:          {"IRRQ Protection Error: wrap error", ResourceQP},
		EventCQSQ:              {"CQ/SQ Error", ResourceQP},
		EventCQRQ:              {"CQ/RQ Error", ResourceQP},
		EventSRQError:          {"S-RQ error on a QP", ResourceQP},
		EventQPCatastrophic:    {"Local QP Catastrophic Error", ResourceQP},
		EventRQLimit:           {"QP RQ Limit Reached", ResourceQP},
		EventCQOverflow:        {"CQ Overflow Detected", ResourceCQ},
		EventCQOperation:       {"CQ Operation Error", ResourceCQ},
		EventSRQLimit:          {"Shared Receive Queue Limit Reached", ResourceSRQ},
		EventSRQCatastrophic:   {"Shared Receive Queue Catastrophic Failure", ResourceSRQ},
		EventRNICCatastrophic:  {"RNIC Catastrophic Failure", ResourceRNIC},
	}
	if len(want)+1 != len(eventNames) {
		t.Errorf("there are %d events, expected %d", len(eventNames)-1, len(want))
	}
	r, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	told := make(chan Event)
	if err := r.SetAsyncHandler(func(e Event) { told <- e }); err != nil {
		t.Fatal(err)
	}
	for id, w := range want {
		if id.String() != w.name || id.Resource() != w.resource {
			t.Errorf("event %d is %q of a %v, expected %q of a %v", id, id, id.Resource(), w.name, w.resource)
		}
		r.raise(Event{ID: id})
		if e := nettest.Await(t, told); e.ID != id || e.Resource != w.resource || e.RNIC != r {
			t.Errorf("the event for %v is %+v", id, e)
		}
	}
	for res, name := range map[Resource]string{ResourceQP: "QP", ResourceCQ: "CQ", ResourceSRQ: "S-RQ", ResourceRNIC: "RNIC", 0: "unknown resource", 99: "unknown resource"} {
		if res.String() != name {
			t.Errorf("resource %d is %q, expected %q", res, res, name)
		}
	}
}

// QP IDs go round: those of queue pairs that are no more come again, those of the
// others and 0 do not, however many queue pairs there have been.
//
// Claims: V-6.1.4-3
func TestQPIDsAreUsedAgain(t *testing.T) {
	r, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pd, err := r.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	cq, err := r.CreateCQ(CQConfig{Entries: 1})
	if err != nil {
		t.Fatal(err)
	}
	create := func() *QP {
		q, err := pd.CreateQP(QPConfig{SendCQ: cq, RecvCQ: cq})
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	first, second := create(), create()
	if err := first.Destroy(); err != nil {
		t.Fatal(err)
	}
	r.qpn = math.MaxUint32 - 1
	for _, want := range []uint32{math.MaxUint32, first.Num(), second.Num() + 1} {
		if got := create().Num(); got != want {
			t.Errorf("the QP ID is %d, expected %d", got, want)
		}
	}
	// Windows can be bound to the new one, which could not to the old one any more.
	mr, err := pd.Register(make([]byte, 8), LocalRead|BindWindow)
	if err != nil {
		t.Fatal(err)
	}
	mw, err := pd.AllocMW()
	if err != nil {
		t.Fatal(err)
	}
	b := memory.Binding{Window: mw.STag(), Region: mr.STag(), VA: mr.Base(), Length: 8, Access: RemoteRead}
	if err := r.table.Bind(pd.mem, memory.Stream(first.Num()), b); err != nil {
		t.Error(err)
	}
}
