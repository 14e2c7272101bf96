/* The library's own declarations: a libibverbs in which Weft is the device. */
#ifndef WEFT_H
#define WEFT_H


#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "engine.h"

/* In the header these are macros in front of the functions of the same names. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#include "own.h"
int ibv_query_device(struct ibv_context *, struct ibv_device_attr *);
int ibv_query_pkey(struct ibv_context *, uint8_t port, int index, __be16 *key);

#define LIMIT_SGES 32
#define LIMIT_INLINE 1024
#define LIMIT_WRS 65536
#define LIMIT_CQES 1048576

/* options.c: what the environment says. */
bool rc_persona(void);
const char *device_name(void);
bool also_host(void); /* the host's devices are listed, too */
int uverbs_number(void); /* of the device: the first that none of the host's has */
/* In front of a path: the host's files, where there is a view of Weft's. */
#define HOST_ROOT "/proc/self/root"
/* Says on standard error why something is refused, if WEFT_DEBUG is set. */
void explain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Counts what the device does not have and explains it; returns EOPNOTSUPP, which is errno then, too. */
int refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint32_t refused(void); /* how often */

/* loader.c: the engine. */
/* Redirects calls of libraries that were loaded since. */
void redirect_again(void);
/* Loads the engine, if it is not there, and returns it, or NULL with errno set. */
const struct weft_engine *engine_load(void);
/* The engine that is there, or NULL. */
extern const struct weft_engine *weft_engine;
/* Counts the forks of this process's ancestry: an object with another generation
 * belongs to a parent's engine and is of no use here. */
extern unsigned weft_generation;

static inline int verb(uint32_t verb, void *arguments)
{
	const struct weft_engine *e = weft_engine;
	return e ? e->verb(verb, arguments) : EIO;
}

struct context {
	uint32_t handle;
	int ring; /* of async_fd */
	unsigned generation;
	pthread_mutex_t lock; /* of the completion channels */
	struct context *next; /* that is open */
	struct verbs_context verbs; /* the public part is its end */
};

struct channel {
	struct ibv_comp_channel base;
	int ring;
	pthread_mutex_t lock;
	struct cq *cqs; /* that raise their events here */
};

struct cq {
	union {
		struct ibv_cq base;
		struct ibv_cq_ex ex;
	};
	uint32_t handle;
	pthread_mutex_t lock; /* of the consumer's side */
	struct weft_completions *queue;
	unsigned idle;       /* polls in a row that found nothing */
	uint32_t given;      /* events given to the program; channel's lock */
	struct cq *next;     /* in the channel */
	uint32_t async_given; /* asynchronous events given to the program */
	struct weft_completion current; /* of start_poll and next_poll */
};

/* The library's half of a send or receive queue. */
struct work {
	pthread_mutex_t lock;
	struct weft_queue queue;
	uint64_t done;   /* slots before this are free */
	uint32_t depth, sges;
	uint64_t *ids;   /* the program's, by slot */
	uint8_t *ops;    /* enum ibv_wc_opcode, by slot */
};

struct qp {
	union {
		struct ibv_qp base;
		struct ibv_qp_ex ex;
	};
	uint32_t handle;
	uint32_t async_given;
	bool signal_all;
	bool reset; /* nothing can be posted */
	struct work send, receive;
	uint32_t inline_size; /* octets of an inline slot */
	uint8_t *inline_data;
	uint32_t inline_mr, inline_key;
	/* Of wr_start to wr_complete. */
	uint64_t building;
	int failed;
	struct ibv_qp_init_attr attributes;
};

struct srq {
	struct ibv_srq base;
	uint32_t handle;
	uint32_t async_given;
	uint32_t depth, sges, stride;
	uint8_t *entries; /* where a post is put together */
	pthread_mutex_t lock;
};

struct mr {
	struct ibv_mr base;
	uint32_t access;
};

static inline struct context *context_of(struct ibv_context *c)
{
	return (struct context *)((uint8_t *)verbs_get_ctx(c) - offsetof(struct context, verbs));
}

/* Is the object's engine another process's? */
static inline bool foreign(struct ibv_context *c)
{
	return context_of(c)->generation != weft_generation;
}

static inline struct cq *cq_of(struct ibv_cq *c) { return (struct cq *)c; }
static inline struct qp *qp_of(struct ibv_qp *q) { return (struct qp *)q; }
static inline struct srq *srq_of(struct ibv_srq *s) { return (struct srq *)s; }

#define load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

/* Can nothing be posted to the object any more? Its engine is another process's, or the device has failed. */
static inline bool lost(struct ibv_context *c) { return foreign(c) || load(weft_engine->failed); }

/* memory.c */
void *allocate(size_t octets); /* zeroed, on a cache line */
uint32_t power_of_two(uint32_t n);
struct ibv_mw *alloc_mw(struct ibv_pd *, enum ibv_mw_type);
int dealloc_mw(struct ibv_mw *);
struct ibv_mr *alloc_null_mr(struct ibv_pd *);
int advise_mr(struct ibv_pd *, enum ibv_advise_mr_advice, uint32_t flags, struct ibv_sge *, uint32_t n);
struct ibv_td *alloc_td(struct ibv_context *, struct ibv_td_init_attr *);
int dealloc_td(struct ibv_td *);
struct ibv_pd *alloc_parent_domain(struct ibv_context *, struct ibv_parent_domain_init_attr *);

/* cq.c */
int poll_cq(struct ibv_cq *, int, struct ibv_wc *);
int req_notify_cq(struct ibv_cq *, int);
struct ibv_cq_ex *create_cq_ex(struct ibv_context *, struct ibv_cq_init_attr_ex *);
int modify_cq(struct ibv_cq *, struct ibv_modify_cq_attr *);
void forget_completions(struct cq *, struct qp *);
/* Takes the next completion and frees what it kept; false if there is none. Needs lock. */
bool next_completion(struct cq *, struct weft_completion *, uint64_t *wr_id, enum ibv_wc_opcode *);
/* cq_ex.c */
void fill_cq_ex(struct ibv_cq_ex *);

/* post.c */
int post_send(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
int post_recv(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **);
int bind_mw(struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *);
/* The next free slot of the send queue, or NULL; needs send.lock. */
struct weft_send *send_slot(struct qp *, uint64_t n);
/* qp_ex.c */
void fill_qp_ex(struct ibv_qp_ex *, uint64_t ops);

/* absent.c: has what the device lacks refused with a reason. */
void fill_absent(struct verbs_context *);

/* query.c and strings.c; headers do not have them. */
int ibv_query_gid_type(struct ibv_context *, uint8_t port, unsigned int index, int *type);
const char *ibv_wr_opcode_str(enum ibv_wr_opcode);

/* qp.c */
struct ibv_qp *create_qp_ex(struct ibv_context *, struct ibv_qp_init_attr_ex *);

/* srq.c */
int post_srq_recv(struct ibv_srq *, struct ibv_recv_wr *, struct ibv_recv_wr **);
struct ibv_srq *create_srq_ex(struct ibv_context *, struct ibv_srq_init_attr_ex *);
int get_srq_num(struct ibv_srq *, uint32_t *);

/* query.c */
int query_port(struct ibv_context *, uint8_t, struct ibv_port_attr *, size_t);
int query_device_ex(struct ibv_context *, const struct ibv_query_device_ex_input *, struct ibv_device_attr_ex *, size_t);
int query_rt_values(struct ibv_context *, struct ibv_values_ex *);
uint64_t device_guid(void); /* in network order */

/* events.c: descriptors that are readable when there is an event, and are never writable:
 * programs take that for an error. One octet stands for one event. */
struct bell {
	int fd;   /* the program's */
	int ring; /* the engine's */
};
int bell_open(struct bell *); /* 0 or an errno */
bool bell_wait(int fd);       /* takes one; false with errno set */
void bell_unring(int fd, uint32_t n);

/* Waits until the program has acknowledged what it was given. */
void await_acknowledged(pthread_mutex_t *, pthread_cond_t *, uint32_t *completed, uint32_t *given);

/* gid.c: the GID table, which is the addresses of this machine. */
struct gid {
	union ibv_gid gid;
	uint32_t interface;
};
#define LIMIT_GIDS 64
int gid_table(struct gid table[LIMIT_GIDS]); /* how many there are */

/* sysfs.c: the files that sysfs would have of the device, below its folder, and one of
 * them: how long it is, or -1 if there is none. */
typedef void device_file_fn(void *to, const char *file, const char *text);
void device_files(device_file_fn *put, void *to);
int device_file(const char *folder, const char *file, char *text, size_t room);

/* got.c */
struct redirection {
	const char *name;
	void *function;
};
/* Redirects the calls of libraries, which wanted takes by the names of their files; the program's is "". */
void redirect(bool (*wanted)(const char *library), const struct redirection *, size_t n);

/* signals.c: gives the program's handlers of signals a stack of their own. */
void redirect_signals(void);

/* close.c: keeps the engine's descriptors when the program closes all that there may be. */
void close_before_loading(void);
void redirect_close(void);
void redirect_close_again(void); /* in libraries that were loaded since */

/* redirect.c: librdmacm's calls on /dev/infiniband/rdma_cm. */
void redirect_rdmacm(void);
/* After a fork: descriptors of the parent's engine are no longer special. */
void redirect_forget(void);

#endif
