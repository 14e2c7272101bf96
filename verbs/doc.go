// Package verbs is the RDMA Verbs: the interface between a program and an RNIC,
// here one in software. It follows "RDMA Protocol Verbs Specification (Version
// 1.0)" of the RDMA Consortium, and adds the operations of RFC 7306. docs/verbs.md in
// the repository lists the name that each verb, type and code of the specification has
// here, and the decisions where the text is open.
//
// # The objects
//
// An [RNIC] is the container of all related objects. A [PD], a protection domain, says
// which queue pairs may use which memory. A memory region, [MR], is a []byte of the
// program with a name, its STag; work requests name memory by STag and tagged offset,
// and so do peers to which it was advertised. A [QP], a queue pair, is the end of one
// connection: a send queue and a receive queue of work requests. A [CQ], a completion
// queue, holds the completions of work requests.
//
//	rnic, err := verbs.Open(verbs.Config{})
//	pd, err := rnic.AllocPD()
//	cq, err := rnic.CreateCQ(verbs.CQConfig{Entries: 256})
//	mr, err := pd.Register(buf, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead)
//	qp, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, IRD: 4, ORD: 4})
//
// Package cm connects queue pairs. Post work with [QP.PostSend] and [QP.PostRecv], which
// copy the request and return at once. Poll for its completion with [CQ.Poll], and wait
// for it with [CQ.Wait] or [CQ.RequestNotify]; [CQ.Completions] does both for a loop.
//
// # The operations
//
// A Send goes into the oldest receive that the peer has posted and completes it.
// An RDMA Write and an RDMA Read move octets to and from memory that the peer has
// advertised, without involving the peer's program. FetchAdd and CmpSwap change 8 octets
// of it atomically; Immediate Data is a Send of 8 octets that needs no memory. Those
// three are of RFC 7306 and need [QPConfig].Extensions.
//
// # The rules
//
// iWARP has rules that a program must know.
//
// Post receives before they are needed. A message that finds none ends the
// stream, and so does one that is longer than its receive. (PauseOnEmptyRQ makes
// the stream wait for a receive instead.)
//
// The side that dials sends first. What the other side posts is held back until the
// first message has come; package cm has a peer-to-peer start-up for programs in which
// the other side has to begin.
//
// The completion of a Send or Write means that the memory may be used again. It says
// nothing about the peer: its memory has been written when it answers, or when a later
// Read completes, even one of no octets. Order is kept: when a receive completes,
// everything that the peer sent and wrote before it is in place.
//
// Requests start and complete in the order of posting. But a Read is answered after
// later requests have been sent: a Write after a Read may change what the Read finds,
// unless the Write has a ReadFence.
//
// Do not look at memory to see whether a Write has arrived. Octets are placed in
// any order and may be placed twice; the memory model of Go says nothing about
// them. Wait for a completion.
//
// The memory that a Read delivers into needs RemoteWrite, because to the protocol the
// response is a write by the peer. With ReadSinkLocalWrite, LocalWrite is enough: a
// queue pair accepts only the response to its own request.
//
// Memory that a request names must not be touched until the request is complete.
// For memory that a peer may access at any time the two programs need a protocol of their
// own that says which of them uses it when.
//
// An STag can be taken back at any time: when [MR.Deallocate] or [MW.Deallocate]
// returns no octet moves through it, in either direction, and no peer can delay
// that. The same holds after a completed OpInvalidate, OpReadInvalidate, and a
// receive whose WC.Invalidated names it. Messages that were using it end their
// stream.
//
// # Memory for a while
//
// There are three ways to lend memory to a peer, and to take it back, without a verb
// for each message. A memory window, [MW], is bound by an OpBind to a part of a region that
// was registered with BindWindow, for the peer of that queue pair alone
// ([QPConfig].BindWindows); the region itself needs no remote right. An STag from
// [PD.AllocMR] gets its memory by an OpFastRegister; that needs a queue pair with
// [QPConfig].Privileged. Both end with an OpInvalidate, or with a message of the
// peer that names them (OpSendInvalidate), and start again with the next request.
// And a region can be registered for one queue pair alone, with [MRConfig].QP.
//
// The three requests that only change memory are executed in their turn, send nothing,
// and have taken effect before the request behind them starts. An OpInvalidate waits
// until the Sends and Writes before it have been written, but for Reads only with a
// LocalFence.
//
// Memory in several pieces of one size is registered as one region by a [BufferList];
// the [Mode] that the RNIC was opened in says what the pieces are.
//
// # Receives for many
//
// A server with many connections need not post receives for each: queue pairs that
// were created with the same [SRQ], a shared receive queue, take their receives from
// it as messages arrive. The server has to keep it filled: [SRQConfig].Limit raises an
// event when few receives are left, [WC].QPNum shows which queue pair uses many, and
// [QP.Abort] ends its stream. With PauseOnEmptyRQ, streams that find no receive wait.
//
// # Errors
//
// A verb that fails returns one of the Err values and has changed nothing. A work
// request that fails completes with a [Status], whether it was signaled or not;
// the requests behind it complete as Flushed, and the stream ends with a Terminate
// message that reports the reason to the peer. [WC.Err] has both the status and the
// reason, and names the field to set where one is missing. An error of the peer raises
// an [Event], see [RNIC.SetAsyncHandler]. [QP.Err] keeps the reason. With
// [QPConfig].Strict, PostSend refuses requests that would fail so.
//
// # Administration
//
// [Limits] bound what an RNIC holds, and what peers can make it hold; an error names the
// limit that was reached. [RNIC.Query] returns the limits, [RNIC.Usage] the numbers of
// objects, and [RNIC.Stats], [QP.Stats] and [CQ.Stats] counts of what has happened.
// [RNIC.QPs] finds the queue pairs, and [QP.Abort] ends the stream of one.
//
// Give code that is not trusted with an RNIC non-privileged views: [UserQP], [UserSRQ]
// and [UserCQ] can post and poll, and nothing else (Verbs §9.1). They restrict by type
// only, as a program is one address space. [RNIC.Fail], [CQ.Fail], [SRQ.Fail] and
// [QP.Fail] simulate broken hardware for tests.
//
// # States
//
// A queue pair is Idle without a stream, RTS while it is connected, Closing or Terminate
// while the stream is being ended, and Error after a stream that did not end gracefully.
// [QP.Close] ends a stream gracefully and leaves both sides Idle, ready to be connected
// again; [QP.Reset] brings one back from Error.
//
// # Concurrency
//
// All methods may be called by any goroutine, also by handlers. Only Close and the
// methods that wait by name wait for a peer. The RNIC does not depend on the program
// calling anything.
package verbs
