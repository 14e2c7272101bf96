// This file chooses the event for an error that the peer caused (Verbs §8.3.3, figure
// 24).

package verbs

import (
	"errors"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/rdmap"
)

// eventOf returns the event for err. There are fewer codes on the wire than events:
// where several events share a code, fields of the error decide.
func (q *QP) eventOf(err error) EventID {
	var c interface {
		TerminateCode() (layer, etype, code uint8)
	}
	var segment *ddp.Error
	if errors.As(err, &segment) {
		if id := q.segmentEvent(segment); id != 0 {
			return id
		}
	}
	if !errors.As(err, &c) {
		return EventQPCatastrophic
	}
	layer, etype, code := c.TerminateCode()
	key := [3]uint8{layer, etype, code}
	if qn, ok := queueOf(err); ok && qn == rdmap.QueueRequest {
		if id, ok := requestEvents[key]; ok {
			return id
		}
	}
	if id, ok := events[key]; ok {
		return id
	}
	return EventQPCatastrophic
}

// segmentEvent names the event for a segment that DDP refused with a code that
// several events share, 0 for any other.
func (q *QP) segmentEvent(e *ddp.Error) EventID {
	switch {
	case e.EType == ddp.TaggedBuffer && e.Code == ddp.CodeNotAssociated:
		switch e.Fault {
		case ddp.FaultAssociation:
			return EventProtectionPD
		case ddp.FaultDisabled:
			return EventWriteDisabled
		}
	case e.EType == ddp.UntaggedBuffer && (e.Code == ddp.CodeMSNRange || e.Code == ddp.CodeNoBuffer):
		missing := func(places int) bool {
			return e.Code == ddp.CodeMSNRange && uint64(e.Ahead) < uint64(places)
		}
		qn, _ := queueOf(e)
		switch {
		case qn == rdmap.QueueSend && missing(q.rq.count()):
			return EventRQMSNGap
		case qn == rdmap.QueueSend:
			return EventRQMSNRange
		case qn == rdmap.QueueRequest && missing(q.terms.IRD):
			return EventIRRQMSNGap
		}
		return EventIRRQMSNRange // of whatever does not target the RQ
	}
	return 0
}

// queueOf is the queue of the segment at fault, if it was an untagged one.
func queueOf(err error) (qn uint32, ok bool) {
	var at interface{ Header() []byte }
	var h ddp.Untagged
	ok = errors.As(err, &at) && h.Parse(at.Header())
	return h.QN, ok
}

// requestEvents are the events of queue 1 where they are not those of queue 0.
var requestEvents = map[[3]uint8]EventID{
	{rdmap.LayerDDP, 2, 1}: EventReadDisabled, // the queue exists, so it is that
	{rdmap.LayerDDP, 2, 3}: EventIRRQFull,     // found by RDMAP: segmentEvent handles those of DDP
	{rdmap.LayerDDP, 2, 4}: EventBadReadRequest,
	{rdmap.LayerRDMA, rdmap.RemoteOperation, rdmap.CodeUnspecified}: EventBadReadRequest,
}

var events = map[[3]uint8]EventID{
	{rdmap.LayerLLP, 0, rdmap.CodeCRC}:    EventCRC,
	{rdmap.LayerLLP, 0, rdmap.CodeMarker}: EventBadFPDU,

	{rdmap.LayerDDP, 0, 0}: EventSegmentSize,
	{rdmap.LayerDDP, 1, 0}: EventProtectionSTag,
	{rdmap.LayerDDP, 1, 1}: EventProtectionBounds,
	{rdmap.LayerDDP, 1, 2}: EventProtectionAccess,
	{rdmap.LayerDDP, 1, 3}: EventProtectionWrap,
	{rdmap.LayerDDP, 1, 4}: EventDDPVersion,
	{rdmap.LayerDDP, 2, 1}: EventQueueNumber,
	{rdmap.LayerDDP, 2, 2}: EventRQMSNRange,
	{rdmap.LayerDDP, 2, 3}: EventRQMSNRange,
	{rdmap.LayerDDP, 2, 4}: EventRQMessage,
	{rdmap.LayerDDP, 2, 5}: EventRQMessage,
	{rdmap.LayerDDP, 2, 6}: EventDDPVersion,

	{rdmap.LayerRDMA, rdmap.RemoteProtection, rdmap.CodeInvalidSTag}:   EventIRRQSTag,
	{rdmap.LayerRDMA, rdmap.RemoteProtection, rdmap.CodeBounds}:        EventIRRQBounds,
	{rdmap.LayerRDMA, rdmap.RemoteProtection, rdmap.CodeAccess}:        EventIRRQAccess,
	{rdmap.LayerRDMA, rdmap.RemoteProtection, rdmap.CodeNotAssociated}: EventIRRQPD,
	{rdmap.LayerRDMA, rdmap.RemoteProtection, rdmap.CodeWrap}:          EventIRRQWrap,
	{rdmap.LayerRDMA, rdmap.RemoteOperation, rdmap.CodeVersion}:        EventRDMAVersion,
	{rdmap.LayerRDMA, rdmap.RemoteOperation, rdmap.CodeOpcode}:         EventOpcode,
	{rdmap.LayerRDMA, rdmap.RemoteOperation, rdmap.CodeStream}:         EventNoLastBit,
	{rdmap.LayerRDMA, rdmap.RemoteOperation, rdmap.CodeUnspecified}:    EventNoLastBit,
}
