// Package verbs is the RDMA Verbs: the interface between a program and an RNIC,
// here one in software. It follows "RDMA Protocol Verbs Specification (Version
// 1.0)" of the RDMA Consortium, and adds the operations of RFC 7306. What each
// verb, type and code of the specification is called here stands in docs/verbs.md
// of the repository, with what was decided where the text is open.
//
// # The objects
//
// An [RNIC] is all that belongs together. A [PD], a protection domain, says which
// queue pairs may use which memory. A memory region, [MR], is a []byte of the
// program's with a name, its STag; work requests name memory by STag and tagged
// offset, and so do peers that were told of it. A [QP], a queue pair, is the end
// of one connection: a send queue and a receive queue of work requests. A [CQ], a
// completion queue, is where finished work requests are found.
//
//	rnic, err := verbs.Open(verbs.Config{})
//	pd, err := rnic.AllocPD()
//	cq, err := rnic.CreateCQ(verbs.CQConfig{Entries: 256})
//	mr, err := pd.Register(buf, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead)
//	qp, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, IRD: 4, ORD: 4})
//
// Package cm connects queue pairs. Work is posted with [QP.PostSend] and
// [QP.PostRecv], which copy the request and return at once; its end is found with
// [CQ.Poll], and waited for with [CQ.Wait] or [CQ.RequestNotify]; [CQ.Completions]
// is both for a loop.
//
// # The operations
//
// A Send goes into the oldest receive that the peer has posted and completes it.
// An RDMA Write and an RDMA Read move octets to and from memory that the peer
// has told us of, without the peer's program noticing. FetchAdd and CmpSwap
// change 8 octets of it, all or nothing; Immediate Data is a Send of 8 octets that
// needs no memory. Those three are of RFC 7306 and want [QPConfig].Extensions.
//
// # The rules
//
// What one has to know of iWARP:
//
// Post receives before they are needed. A message that finds none ends the
// stream, and so does one that is longer than its receive. (PauseOnEmptyRQ makes
// the stream wait for a receive instead.)
//
// The side that dials sends first. What the other side posts is held back until
// the first message has come; package cm has a peer-to-peer start-up for those
// who need it otherwise.
//
// A completion of a Send or Write says that the memory may be used again. It says
// nothing about the peer: that its memory was written shows when it answers, or
// when a later Read, of no octets even, completes. But order is kept: when a
// receive completes, everything that the peer sent and wrote before it is in
// place.
//
// Requests start and complete in the order of posting. A Read is answered later
// than what is posted behind it is sent: a Write after a Read may change at the
// peer what the Read is to find, unless it has a ReadFence.
//
// Do not look at memory to see whether a Write has arrived. Octets are placed in
// any order and may be placed twice; the memory model of Go says nothing about
// them. Wait for a completion.
//
// The memory that a Read delivers into needs RemoteWrite, because to the
// protocol its answer is a write by the peer. ReadSinkLocalWrite makes LocalWrite
// do: a queue pair takes only the answer to the question it asked.
//
// Memory that a request names must not be touched until the request is complete.
// Memory that a peer may write or read at any time belongs to both, and to nobody.
//
// An STag can be taken back at any time: when [MR.Deallocate] or [MW.Deallocate]
// returns no octet moves through it, in either direction, and no peer can delay
// that. The same holds after a completed OpInvalidate, OpReadInvalidate, and a
// receive whose WC.Invalidated names it. Messages that were using it end their
// stream.
//
// # Memory for a while
//
// There are three ways to lend memory to a peer and take it back without a verb for
// each message. A memory window, [MW], is bound by an OpBind to a part of a region that
// was registered with BindWindow, for the peer of that queue pair alone
// ([QPConfig].BindWindows); the region itself needs no remote right. An STag from
// [PD.AllocMR] gets its memory by an OpFastRegister; that needs a queue pair with
// [QPConfig].Privileged. Both end with an OpInvalidate, or with the message of the
// peer's that names them (OpSendInvalidate), and start again with the next request.
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
// it as messages arrive. What the server has to look after is that it does not run
// dry: a limit tells of that ([SRQConfig].Limit), [WC].QPNum of who takes too much, and
// [QP.Abort] ends that one. PauseOnEmptyRQ makes those wait that find nothing.
//
// # Errors
//
// A verb that fails returns one of the Err values and has changed nothing. A work
// request that fails completes with a [Status], whether it was signaled or not;
// the requests behind it complete as Flushed, and the stream ends with a Terminate
// message that tells the peer why. [WC.Err] is both, the status and the reason,
// with the field to set where one is missing. What the peer does wrong is an [Event],
// for which there is [RNIC.SetAsyncHandler]. [QP.Err] keeps the reason.
// [QPConfig].Strict has PostSend refuse what would fail so.
//
// # Administration
//
// [Limits] bound what an RNIC holds, and what those who connect can make it hold;
// an error names the limit that was met. [RNIC.Query] tells the limits, [RNIC.Usage]
// what is in use, and [RNIC.Stats], [QP.Stats] and [CQ.Stats] what has happened.
// [RNIC.QPs] finds the queue pairs, and [QP.Abort] ends the stream of one.
//
// Code that is not to be trusted with an RNIC is given views: [UserQP], [UserSRQ]
// and [UserCQ] post and poll and can do nothing else (Verbs §9.1). They are types,
// not walls: all of a program is one address space. [RNIC.Fail], [CQ.Fail],
// [SRQ.Fail] and [QP.Fail] let a program be tested against broken hardware.
//
// # States
//
// A queue pair is Idle, RTS while it is connected, Closing or Terminate while the
// stream is being ended, and Error when it has ended badly. [QP.Close] ends a
// stream gracefully and leaves both sides Idle, ready to be connected again;
// [QP.Reset] brings one back from Error.
//
// # Concurrency
//
// All methods may be called by any goroutine, those of handlers included. Nothing
// but Close and the waits ever waits for a peer, and nothing that a program does
// or leaves undone keeps the RNIC from working.
package verbs
