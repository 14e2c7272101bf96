// Package weft is the front page of a software RNIC in pure Go: the iWARP
// protocols (MPA, DDP and RDMAP) over ordinary byte streams, and the RDMA Verbs
// on top of them. It holds no code. Programs use two packages:
//
//   - [github.com/weft-rdma/weft/verbs] is the RNIC: protection domains,
//     memory regions, queue pairs, completion queues, work requests.
//   - [github.com/weft-rdma/weft/cm] connects queue pairs: listen, dial, accept.
//
// The layers below are packages of their own: memory, rdmap, ddp and mpa. The
// README has a first program, docs/architecture.md a picture of the layers.
package weft
