// This file is asynchronous events (Verbs §8.3.3, §9.5.3).

package verbs

// An EventID names an asynchronous event (Verbs §9.5.3, figure 37).
type EventID uint8

const (
	EventLLPCloseComplete  EventID = iota + 1 // the graceful close is done: the QP is Idle
	EventTerminateReceived                    // the peer sent a Terminate message
	EventLLPReset                             // the peer's stack reset the connection
	EventLLPLost                              // time-out, or another failure of the transport
	EventSegmentSize                          // too small for its headers
	EventCRC
	EventBadFPDU // marker and length disagree
	EventDDPVersion
	EventRDMAVersion
	EventOpcode
	EventQueueNumber
	EventReadDisabled   // QPConfig.NoRemoteRead
	EventWriteDisabled  // QPConfig.NoRemoteWrite
	EventBadReadRequest // or an Atomic Request of the wrong size
	EventNoLastBit      // or a message that is malformed otherwise
	EventProtectionSTag // of tagged data, like the next four
	EventProtectionBounds
	EventProtectionAccess
	EventProtectionPD
	EventProtectionWrap
	EventBadClose    // activity while closing, or a failure while terminating
	EventBadLLPClose // the peer closed with work outstanding
	EventRQMSNRange  // or no receive was posted
	EventRQMSNGap    // a message was left out
	EventRQMessage   // invalid offset, or longer than any message may be
	EventIRRQFull    // more than IRD
	EventIRRQMSNGap  // a request was left out
	EventIRRQMSNRange
	EventIRRQSTag // of what is read, or of an atomic's target, like the next four
	EventIRRQBounds
	EventIRRQAccess
	EventIRRQPD
	EventIRRQWrap
	EventCQSQ     // the send queue's CQ overflowed or failed
	EventCQRQ     // the receive queue's CQ overflowed or failed
	EventSRQError // a receive could not be taken from the S-RQ
	EventQPCatastrophic
	EventRQLimit          // more messages in progress than QPConfig.RQLimit
	EventCQOverflow       // of a CQ
	EventCQOperation      // of a CQ: its completions are undefined
	EventSRQLimit         // of an S-RQ: fewer receives are left than SRQConfig.Limit
	EventSRQCatastrophic  // of an S-RQ
	EventRNICCatastrophic // of the RNIC: every verb but Close fails
)

var eventNames = [...]string{
	EventLLPCloseComplete:  "LLP Close Complete",
	EventTerminateReceived: "Terminate Message Received",
	EventLLPReset:          "LLP Connection Reset",
	EventLLPLost:           "LLP Connection Lost",
	EventSegmentSize:       "LLP Integrity Error: segment size invalid",
	EventCRC:               "LLP Integrity Error: invalid CRC",
	EventBadFPDU:           "LLP Integrity Error: bad FPDU",
	EventDDPVersion:        "Remote Operation Error: invalid DDP version",
	EventRDMAVersion:       "Remote Operation Error: invalid RDMA version",
	EventOpcode:            "Remote Operation Error: unexpected opcode",
	EventQueueNumber:       "Remote Operation Error: invalid DDP queue number",
	EventReadDisabled:      "Remote Operation Error: RDMA Read not enabled",
	EventWriteDisabled:     "Remote Operation Error: RDMA Write and RDMA Read Response not enabled",
	EventBadReadRequest:    "Remote Operation Error: RDMA Read Request too small or offset not zero",
	EventNoLastBit:         "Remote Operation Error: no 'L' bit when expected",
	EventProtectionSTag:    "Protection Error: invalid STag",
	EventProtectionBounds:  "Protection Error: tagged base and bounds violation",
	EventProtectionAccess:  "Protection Error: tagged access rights violation",
	EventProtectionPD:      "Protection Error: tagged invalid PD",
	EventProtectionWrap:    "Protection Error: wrap error",
	EventBadClose:          "Bad Close",
	EventBadLLPClose:       "Bad LLP Close",
	EventRQMSNRange:        "RQ Protection Error: invalid MSN, range not valid",
	EventRQMSNGap:          "RQ Protection Error: invalid MSN, gap in MSN",
	EventRQMessage:         "RQ Protection Error: invalid message",
	EventIRRQFull:          "IRRQ Protection Error: invalid MSN, too many RDMA Read Requests in progress",
	EventIRRQMSNGap:        "IRRQ Protection Error: invalid MSN, gap in MSN",
	EventIRRQMSNRange:      "IRRQ Protection Error: invalid MSN, range not valid",
	EventIRRQSTag:          "IRRQ Protection Error: invalid STag",
	EventIRRQBounds:        "IRRQ Protection Error: tagged base and bounds violation",
	EventIRRQAccess:        "IRRQ Protection Error: tagged access rights violation",
	EventIRRQPD:            "IRRQ Protection Error: tagged invalid PD",
	EventIRRQWrap:          "IRRQ Protection Error: wrap error",
	EventCQSQ:              "CQ/SQ Error",
	EventCQRQ:              "CQ/RQ Error",
	EventSRQError:          "S-RQ error on a QP",
	EventQPCatastrophic:    "Local QP Catastrophic Error",
	EventRQLimit:           "QP RQ Limit Reached",
	EventCQOverflow:        "CQ Overflow Detected",
	EventCQOperation:       "CQ Operation Error",
	EventSRQLimit:          "Shared Receive Queue Limit Reached",
	EventSRQCatastrophic:   "Shared Receive Queue Catastrophic Failure",
	EventRNICCatastrophic:  "RNIC Catastrophic Failure",
}

func (id EventID) String() string {
	if int(id) < len(eventNames) && eventNames[id] != "" {
		return eventNames[id]
	}
	return "unknown event"
}

// A Resource says what kind of object an event is about (Verbs §9.5.3, the
// Resource Indicator).
type Resource uint8

const (
	ResourceQP Resource = iota + 1
	ResourceCQ
	ResourceSRQ
	ResourceRNIC
)

var resourceNames = [...]string{ResourceQP: "QP", ResourceCQ: "CQ", ResourceSRQ: "S-RQ", ResourceRNIC: "RNIC"}

func (r Resource) String() string {
	if int(r) < len(resourceNames) && resourceNames[r] != "" {
		return resourceNames[r]
	}
	return "unknown resource"
}

// Resource says what kind of object the event is about.
func (id EventID) Resource() Resource {
	switch id {
	case EventCQOverflow, EventCQOperation:
		return ResourceCQ
	case EventSRQLimit, EventSRQCatastrophic:
		return ResourceSRQ
	case EventRNICCatastrophic:
		return ResourceRNIC
	}
	return ResourceQP
}

// An Event is an asynchronous event (Verbs §8.3.3, §9.4.2). Of QP, CQ and SRQ
// the one that Resource names is set, the others are nil.
type Event struct {
	ID       EventID
	Resource Resource // ID.Resource()
	RNIC     *RNIC
	QP       *QP // QP.Num is the QP ID
	CQ       *CQ
	SRQ      *SRQ
	Err      error // what happened, if there is more to be said
}
