/* What the library and the engine have in common: queues in memory that both
 * see, and the arguments of verbs. The library (C) is what programs link; the
 * engine (Go) is loaded when a device is opened.
 *
 * A queue has one writer of tail and one of head. Both only grow; entry n is at
 * n modulo the size, a power of two. They are stored after the entries were
 * written, and read before.
 */
#ifndef WEFT_ENGINE_H
#define WEFT_ENGINE_H

#include <stdint.h>

/* The version of all that is declared here. */
#define WEFT_ENGINE_VERSION 1

/* A scatter/gather element, laid out as verbs.SGE is. */
struct weft_sge {
	uint64_t addr;
	uint32_t key;
	uint32_t length;
};

enum weft_op {
	WEFT_SEND = 1,
	WEFT_SEND_IMMEDIATE,
	WEFT_SEND_INVALIDATE,
	WEFT_WRITE,
	WEFT_WRITE_IMMEDIATE,
	WEFT_READ,
	WEFT_COMPARE_SWAP,
	WEFT_FETCH_ADD,
	WEFT_BIND,
	WEFT_INVALIDATE,
	WEFT_RECEIVE,
};

enum weft_send_flags {
	WEFT_SIGNALED = 1,
	WEFT_SOLICITED = 2,
	WEFT_FENCE = 4,
};

/* A work request of a send queue. id comes back in the completion. */
struct weft_send {
	uint64_t id;
	uint8_t op;
	uint8_t flags;
	uint16_t sges;
	uint32_t remote_key; /* of a bind: of the window, before */
	uint64_t remote;     /* of a bind: the first octet */
	uint64_t operand;    /* what is added or swapped in; of a bind: octets */
	uint64_t compare;    /* of a bind: rights */
	uint32_t immediate;  /* in network order; or the key to invalidate; of a bind: the key after */
	uint32_t region;     /* of a bind: the key of the region */
	struct weft_sge sge[];
};

/* A work request of a receive queue. */
struct weft_receive {
	uint64_t id;
	uint32_t sges;
	uint32_t reserved;
	struct weft_sge sge[];
};

/* A send or receive queue: the library posts, the engine takes. */
struct weft_queue {
	uint64_t tail;
	uint8_t apart1[56];
	uint64_t head;
	uint8_t apart2[56];
	uint32_t bell; /* the engine wants to be called after a post */
	uint32_t mask;
	uint32_t stride; /* octets of an entry */
	uint32_t extensions; /* the peer knows RFC 7306: immediate data and atomics can be posted */
	uint8_t *entries;
};

enum weft_completion_flags {
	WEFT_HAS_IMMEDIATE = 1,
	WEFT_HAS_INVALIDATED = 2,
	WEFT_OF_WRITE = 4, /* a receive that an RDMA Write with immediate data used */
};

struct weft_completion {
	uint64_t id;
	uint64_t owner; /* what the queue pair was created with */
	uint32_t length;
	uint32_t immediate; /* or the key that was invalidated */
	uint8_t op;         /* enum weft_op, or 0 for that of the request */
	uint8_t status;     /* enum ibv_wc_status */
	uint8_t flags;
	uint8_t shared; /* the receive is of a shared queue */
	uint32_t vendor_error;
	uint64_t time; /* of CLOCK_MONOTONIC, ns, if the queue is timed */
};

/* When a completion is to raise an event. */
enum weft_armed {
	WEFT_DISARMED,
	WEFT_ARMED_SOLICITED,
	WEFT_ARMED,
};

/* A completion queue: the engine puts, the library takes. */
struct weft_completions {
	uint64_t tail;
	uint8_t apart1[56];
	uint64_t head;
	uint32_t armed;  /* enum weft_armed; the library sets, the engine clears */
	uint32_t raised; /* events not yet taken; the engine adds, the library subtracts */
	int32_t event_fd; /* where one octet is written for each of them, or -1 */
	uint32_t mask;
	uint32_t timed; /* completions have a time */
	struct weft_completion *entries;
};

/* Verbs. Each has a struct of arguments and returns 0 or an errno. */
enum weft_verb {
	WEFT_OPEN = 1,
	WEFT_CLOSE,
	WEFT_ALLOC_PD,
	WEFT_FREE_PD,
	WEFT_REGISTER,
	WEFT_REREGISTER,
	WEFT_DEREGISTER,
	WEFT_ALLOC_WINDOW,
	WEFT_FREE_WINDOW,
	WEFT_CREATE_CQ,
	WEFT_RESIZE_CQ,
	WEFT_DESTROY_CQ,
	WEFT_CREATE_SRQ,
	WEFT_MODIFY_SRQ,
	WEFT_QUERY_SRQ,
	WEFT_DESTROY_SRQ,
	WEFT_CREATE_QP,
	WEFT_MODIFY_QP,
	WEFT_QUERY_QP,
	WEFT_DESTROY_QP,
	WEFT_NEXT_EVENT,
	WEFT_AWAIT_EXTENSIONS, /* of a queue pair: until its peer is known to take them */
	WEFT_REGISTER_NULL,
	WEFT_ADVISE,
	WEFT_FIND_PD,
	WEFT_FIND_REGION,
};

/* Objects are named by handles that the engine gives out; 0 is none. */
struct weft_open {
	int32_t event_fd; /* where one octet is written for each asynchronous event */
	uint32_t handle;
};

struct weft_object {
	uint32_t context;
	uint32_t handle;
	uint32_t events; /* out, of what is destroyed: those that nobody has taken */
};

struct weft_register {
	uint32_t pd;
	uint32_t handle;
	uint64_t addr, length, offset; /* offset: the tagged offset of the first octet */
	uint32_t access;               /* enum ibv_access_flags */
	uint32_t change;               /* of WEFT_REREGISTER: enum ibv_rereg_mr_flags */
	uint32_t key;
};

struct weft_advise {
	uint32_t pd, n;
	struct weft_sge *list;
};

struct weft_window {
	uint32_t pd, handle, type, key;
};

struct weft_cq {
	uint32_t context, handle;
	struct weft_completions *queue;
	uint64_t owner;
};

struct weft_srq {
	uint32_t context, pd, handle;
	uint32_t depth, sges, limit;
	uint32_t change; /* enum ibv_srq_attr_mask */
	uint64_t owner;
};

struct weft_qp {
	uint32_t context, pd, send_cq, recv_cq, srq;
	uint32_t handle, number;
	uint32_t sends, send_sges, receives, receive_sges;
	struct weft_queue *send, *receive;
	uint64_t owner;
};

struct weft_modify {
	uint32_t handle;
	int32_t mask;     /* enum ibv_qp_attr_mask */
	void *attributes; /* struct ibv_qp_attr */
	uint32_t state;   /* out: enum ibv_qp_state */
	uint8_t source[16]; /* the GID that attributes names by its index; all zeroes for none */
};

struct weft_event {
	uint32_t context;
	uint32_t type; /* enum ibv_event_type */
	uint64_t owner; /* of the object that it is about */
};

enum weft_waited {
	WEFT_WAITED_BELL,        /* the descriptor is readable, or has to be waited for */
	WEFT_WAITED_EVENT,       /* an event was raised, of which the descriptor does not tell */
	WEFT_WAITED_INTERRUPTED, /* by a signal */
};

/* What the engine exports. */
struct weft_engine {
	int (*start)(uint32_t version, int rc_persona, uint64_t guid); /* 0 or an errno */
	int (*verb)(uint32_t verb, void *arguments);
	void (*send)(uint32_t qp);         /* take what is in the send queue */
	void (*receive)(uint32_t qp);      /* take what is in the receive queue */
	int (*receive_shared)(uint32_t srq, void *entries, uint32_t stride, uint32_t n); /* returns how many were taken */
	/* Waits for an event of a channel, whose descriptor is given, or for what may become one. */
	int (*wait)(int fd, const uint32_t *cqs, uint32_t n); /* enum weft_waited */
	void (*progress)(uint32_t cq);     /* receive what has arrived, without waiting */
	long (*cm)(int fd, const void *command, unsigned long octets); /* returns what write returns, or -errno */
	void (*cm_open)(int fd, int event_fd); /* event_fd is told of each event */
	void (*cm_close)(int fd);
	int (*has_socket)(int fd);         /* is the descriptor one of the engine's sockets, or what it waits for them with? */
	void (*finish)(uint32_t refused);  /* the process ends; what the library has refused itself */
	const uint32_t *failed;            /* set when the device has failed: nothing can be posted */
};

#endif
