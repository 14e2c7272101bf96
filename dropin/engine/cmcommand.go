package main

/*
#include "engine.h"
#include <infiniband/verbs.h>
#include <rdma/rdma_user_cm.h>
*/
import "C"

import (
	"syscall"
	"unsafe"
)

// This file is the commands that librdmacm writes to its descriptor: which there are
// and what they consist of (rdma/rdma_user_cm.h).

// cmCommand executes a command.
func cmCommand(fd int, command []byte) syscall.Errno {
	cmMu.Lock()
	ch := channels[fd]
	cmMu.Unlock()
	if ch == nil {
		return syscall.EBADF
	}
	const header = C.sizeof_struct_rdma_ucm_cmd_hdr
	number := (*C.struct_rdma_ucm_cmd_hdr)(unsafe.Pointer(unsafe.SliceData(command))).cmd
	body := command[header:]
	if failed.Load() {
		return ch.cmFailed(uint32(number), body)
	}
	switch number {
	case C.RDMA_USER_CM_CMD_CREATE_ID:
		return run(body, ch.create)
	case C.RDMA_USER_CM_CMD_DESTROY_ID:
		return run(body, destroyIdentifier)
	case C.RDMA_USER_CM_CMD_BIND_IP:
		return run(body, bindIP)
	case C.RDMA_USER_CM_CMD_BIND:
		return run(body, bind)
	case C.RDMA_USER_CM_CMD_RESOLVE_IP:
		return run(body, resolveIP)
	case C.RDMA_USER_CM_CMD_RESOLVE_ADDR:
		return run(body, resolveAddr)
	case C.RDMA_USER_CM_CMD_RESOLVE_ROUTE:
		return run(body, resolveRoute)
	case C.RDMA_USER_CM_CMD_QUERY_ROUTE:
		return run(body, queryRoute)
	case C.RDMA_USER_CM_CMD_CONNECT:
		return run(body, connect)
	case C.RDMA_USER_CM_CMD_LISTEN:
		return run(body, listen)
	case C.RDMA_USER_CM_CMD_ACCEPT:
		return run(body, accept)
	case C.RDMA_USER_CM_CMD_REJECT:
		return run(body, reject)
	case C.RDMA_USER_CM_CMD_DISCONNECT:
		return run(body, disconnect)
	case C.RDMA_USER_CM_CMD_INIT_QP_ATTR:
		return run(body, initQPAttr)
	case C.RDMA_USER_CM_CMD_GET_EVENT:
		return run(body, ch.next)
	case C.RDMA_USER_CM_CMD_SET_OPTION:
		return run(body, setOption)
	case C.RDMA_USER_CM_CMD_NOTIFY:
		return 0 // of what has happened already
	case C.RDMA_USER_CM_CMD_MIGRATE_ID:
		return run(body, ch.migrate)
	case C.RDMA_USER_CM_CMD_JOIN_MCAST, C.RDMA_USER_CM_CMD_JOIN_IP_MCAST, C.RDMA_USER_CM_CMD_LEAVE_MCAST:
		return refuse(syscall.EOPNOTSUPP, "rdma_cm: there is no multicast")
	case resolveIBService:
		return refuse(syscall.EOPNOTSUPP, "rdma_resolve_addrinfo: services are InfiniBand's, an IP network has names and ports")
	case writeCMEvent:
		return run(body, writeEvent)
	}
	return refuse(syscall.ENOSYS, "rdma_cm: command %d is not known", number)
}

// run executes a command on its arguments. A library that is older than the header of
// this build gives fewer of them.
func run[T any](body []byte, f func(*T) syscall.Errno) syscall.Errno {
	var a T
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&a)), unsafe.Sizeof(a)), body)
	return f(&a)
}

// find is the identifier of a handle.
func find(handle C.__u32) (*identifier, syscall.Errno) {
	if id := identifiers.get(uint32(handle)); id != nil {
		return id, 0
	}
	return nil, syscall.ENOENT
}

func (ch *channel) create(a *C.struct_rdma_ucm_create_id) syscall.Errno {
	switch a.ps {
	case C.RDMA_PS_TCP, C.RDMA_PS_IB:
	default:
		return refuse(syscall.EOPNOTSUPP, "rdma_create_id: port space %#x has datagrams; that of TCP, %#x, is supported", a.ps, C.RDMA_PS_TCP)
	}
	id := &identifier{channel: ch, uid: uint64(a.uid)}
	id.handle = identifiers.add(id)
	(*C.struct_rdma_ucm_create_id_resp)(pointer(uint64(a.response))).id = C.__u32(id.handle)
	return 0
}

func destroyIdentifier(a *C.struct_rdma_ucm_destroy_id) syscall.Errno {
	id, errno := find(a.id)
	if errno != 0 {
		return errno
	}
	reported := id.destroy()
	(*C.struct_rdma_ucm_destroy_id_resp)(pointer(uint64(a.response))).events_reported = C.__u32(reported)
	return 0
}

// migrate moves an identifier, and its events, to this channel.
func (ch *channel) migrate(a *C.struct_rdma_ucm_migrate_id) syscall.Errno {
	id, errno := find(a.id)
	if errno != 0 {
		return errno
	}
	cmMu.Lock()
	defer cmMu.Unlock()
	from := id.channel
	if from != ch {
		var stay []*cmEvent
		for _, e := range from.events {
			if e.id != id {
				stay = append(stay, e)
				continue
			}
			ch.events = append(ch.events, e)
			tell(ch.ring)
		}
		unring(from.fd, len(from.events)-len(stay))
		from.events, id.channel = stay, ch
	}
	(*C.struct_rdma_ucm_migrate_resp)(pointer(uint64(a.response))).events_reported = C.__u32(id.reported)
	return 0
}

func setOption(a *C.struct_rdma_ucm_set_option) syscall.Errno {
	id, errno := find(a.id)
	if errno != 0 {
		return errno
	}
	if a.level != C.RDMA_OPTION_ID {
		return 0 // paths, which an IP network finds by itself
	}
	value := 0
	if a.optlen >= 4 {
		value = int(*(*int32)(pointer(uint64(a.optval))))
	} else if a.optlen >= 1 {
		value = int(*(*uint8)(pointer(uint64(a.optval))))
	}
	cmMu.Lock()
	defer cmMu.Unlock()
	switch a.optname {
	case C.RDMA_OPTION_ID_REUSEADDR:
		id.reuse = value != 0
	case C.RDMA_OPTION_ID_AFONLY:
		id.only6 = value != 0
	case C.RDMA_OPTION_ID_ACK_TIMEOUT:
		id.timeout = uint8(value)
	}
	return 0
}

// timeoutOfQP is the timeout of its queue pair that the program has set, or 0.
func (id *identifier) timeoutOfQP() uint8 {
	cmMu.Lock()
	defer cmMu.Unlock()
	return id.timeout
}

// initQPAttr tells librdmacm what to modify a queue pair to. The stream comes by itself.
// A timeout that the program has set is its to query; TCP's own hold.
func initQPAttr(a *C.struct_rdma_ucm_init_qp_attr) syscall.Errno {
	id, errno := find(a.id)
	if errno != 0 {
		return errno
	}
	to := (*C.struct_ib_uverbs_qp_attr)(pointer(uint64(a.response)))
	*to = C.struct_ib_uverbs_qp_attr{qp_state: C.__u32(a.qp_state)}
	switch a.qp_state {
	case C.IBV_QPS_INIT:
		to.qp_attr_mask = C.IBV_QP_STATE | C.IBV_QP_ACCESS_FLAGS
		to.qp_access_flags = C.IBV_ACCESS_LOCAL_WRITE | C.IBV_ACCESS_REMOTE_WRITE | C.IBV_ACCESS_REMOTE_READ | C.IBV_ACCESS_REMOTE_ATOMIC | C.IBV_ACCESS_MW_BIND
		if rcPersona {
			to.qp_attr_mask |= C.IBV_QP_PKEY_INDEX | C.IBV_QP_PORT
			to.port_num = 1
		}
	case C.IBV_QPS_RTR:
		to.qp_attr_mask = C.IBV_QP_STATE
		if rcPersona { // all that an RC queue pair takes; no peer is named, see ofManager
			to.qp_attr_mask |= requiredForRTR
			to.path_mtu, to.max_dest_rd_atomic = C.IBV_MTU_4096, mostReads
		}
	case C.IBV_QPS_RTS:
		to.qp_attr_mask = C.IBV_QP_STATE
		if rcPersona {
			to.qp_attr_mask |= requiredForRTS
			to.retry_cnt, to.rnr_retry, to.max_rd_atomic = 7, retriesForEver, mostReads
		}
		if timeout := id.timeoutOfQP(); timeout != 0 {
			to.qp_attr_mask |= C.IBV_QP_TIMEOUT
			to.timeout = C.__u8(timeout)
		}
	default:
		return syscall.EINVAL
	}
	return 0
}
