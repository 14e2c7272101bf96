/* The host's own devices, which weft run --also-host puts behind Weft's.
 *
 * The distribution's library is loaded beside this one, in a namespace of its own
 * (dlmopen): its drivers find it there under the name that this library has for the
 * program. That namespace has a C library of its own, so errno is carried over.
 *
 * Objects are the host's if their context's device is not Weft's. Calls that the header
 * makes inline (to post and to poll) go to the driver directly. What the two libraries
 * share is memory and the structures of the public header.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

/* In the header these are macros in front of the functions of the same names. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static void *host; /* the distribution's library, or NULL */
static struct ibv_device *ours;
static int *(*errno_of_host)(void);
static pthread_once_t loaded = PTHREAD_ONCE_INIT;

extern struct ibv_device **own_ibv_get_device_list(int *);
extern void own_ibv_free_device_list(struct ibv_device **);
extern void own_ibv_ack_async_event(struct ibv_async_event *);
extern int own_ibv_fork_init(void);

static void load_host(void)
{
	const char *path = secure_getenv("WEFT_ALSO_HOST"); /* what a set-uid program loads is not its user's to say */
	if (!path || !*path)
		return;
	struct ibv_device **list = own_ibv_get_device_list(NULL);
	if (!list)
		return;
	ours = list[0];
	own_ibv_free_device_list(list);
	void *library = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
	if (library)
		errno_of_host = dlsym(library, "__errno_location");
	if (!errno_of_host) {
		fprintf(stderr, "weft: the devices of the host are left out: %s\n", dlerror());
		return;
	}
	host = library;
}

static bool host_device(const struct ibv_device *d) { return host && d != ours; }
static bool host_context(const struct ibv_context *c) { return host && c && c->device != ours; }

static void *host_function(const char *name)
{
	void *function = dlsym(host, name);
	if (!function) {
		fprintf(stderr, "weft: the host's libibverbs does not have %s\n", name);
		abort();
	}
	return function;
}

#define HOST(name) ((typeof(&name))host_function(#name))

static void take_errno(void) { errno = *errno_of_host(); }

/* Lists of devices: Weft's, and the host's behind it. In front of the list is the host's
 * own, which keeps its devices alive. */
struct ibv_device **ibv_get_device_list(int *count)
{
	pthread_once(&loaded, load_host);
	struct ibv_device **weft = own_ibv_get_device_list(count);
	if (!host || !weft)
		return weft;
	int n = 0;
	struct ibv_device **hosts = HOST(ibv_get_device_list)(&n);
	struct ibv_device **all = calloc((hosts ? n : 0) + 3, sizeof(*all));
	if (all) {
		all[0] = (struct ibv_device *)hosts;
		all[1] = weft[0];
		for (int i = 0; hosts && i < n; i++)
			all[2 + i] = hosts[i];
		if (count)
			*count = 1 + (hosts ? n : 0);
	} else if (hosts) {
		HOST(ibv_free_device_list)(hosts);
	}
	own_ibv_free_device_list(weft);
	return all ? all + 1 : NULL;
}

void ibv_free_device_list(struct ibv_device **list)
{
	if (!host || !list) {
		own_ibv_free_device_list(list);
		return;
	}
	if (list[-1])
		HOST(ibv_free_device_list)((struct ibv_device **)list[-1]);
	free(list - 1);
}

int ibv_fork_init(void)
{
	return host ? HOST(ibv_fork_init)() : own_ibv_fork_init();
}

static struct ibv_context *context_of_event(const struct ibv_async_event *e)
{
	switch (e->event_type) {
	case IBV_EVENT_CQ_ERR:
		return e->element.cq->context;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return e->element.qp->context;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return e->element.srq->context;
	case IBV_EVENT_WQ_FATAL:
		return e->element.wq->context;
	default: /* of a port or a device: there is nothing to acknowledge */
		return NULL;
	}
}

void ibv_ack_async_event(struct ibv_async_event *e)
{
	if (host && host_context(context_of_event(e)))
		HOST(ibv_ack_async_event)(e);
	else
		own_ibv_ack_async_event(e);
}

/* A call that is Weft's or the host's. */
#define RELAY_IF(is_host, type, name, own, parameters, arguments) \
	extern type own parameters;                                   \
	type name parameters                                          \
	{                                                             \
		if (!(is_host))                                           \
			return own arguments;                                 \
		type result = HOST(name) arguments;                       \
		take_errno();                                             \
		return result;                                            \
	}
#define RELAY(type, name, own, parameters, arguments, context) RELAY_IF(host && host_context(context), type, name, own, parameters, arguments)
#define RELAY_DEVICE(type, name, own, parameters, arguments, device) RELAY_IF(host_device(device), type, name, own, parameters, arguments)
#define RELAY_VOID(name, own, parameters, arguments, context) \
	extern void own parameters;                               \
	void name parameters                                      \
	{                                                         \
		if (host && host_context(context))                    \
			HOST(name) arguments;                             \
		else                                                  \
			own arguments;                                    \
	}

/* Functions of the tools, which no header declares. */
int ibv_query_gid_type(struct ibv_context *, uint8_t, unsigned int, int *);

RELAY_DEVICE(int, ibv_get_device_index, own_ibv_get_device_index, (struct ibv_device *d), (d), d)
RELAY_DEVICE(__be64, ibv_get_device_guid, own_ibv_get_device_guid, (struct ibv_device *d), (d), d)
RELAY_DEVICE(struct ibv_context *, ibv_open_device, own_ibv_open_device, (struct ibv_device *d), (d), d)
RELAY(int, ibv_close_device, own_ibv_close_device, (struct ibv_context *c), (c), c)
RELAY(int, ibv_query_device, own_ibv_query_device, (struct ibv_context *c, struct ibv_device_attr *a), (c, a), c)
RELAY(int, ibv_query_port, own_ibv_query_port, (struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *a), (c, port, a), c)
RELAY(int, ibv_query_gid, own_ibv_query_gid, (struct ibv_context *c, uint8_t port, int i, union ibv_gid *gid), (c, port, i, gid), c)
RELAY(int, _ibv_query_gid_ex, own_ibv_query_gid_ex, (struct ibv_context *c, uint32_t port, uint32_t i, struct ibv_gid_entry *e, uint32_t flags, size_t size), (c, port, i, e, flags, size), c)
RELAY(ssize_t, _ibv_query_gid_table, own_ibv_query_gid_table, (struct ibv_context *c, struct ibv_gid_entry *e, size_t n, uint32_t flags, size_t size), (c, e, n, flags, size), c)
RELAY(int, ibv_query_gid_type, own_ibv_query_gid_type, (struct ibv_context *c, uint8_t port, unsigned int i, int *type), (c, port, i, type), c)
RELAY(int, ibv_query_pkey, own_ibv_query_pkey, (struct ibv_context *c, uint8_t port, int i, __be16 *key), (c, port, i, key), c)
RELAY(int, ibv_get_pkey_index, own_ibv_get_pkey_index, (struct ibv_context *c, uint8_t port, __be16 key), (c, port, key), c)
RELAY(struct ibv_pd *, ibv_alloc_pd, own_ibv_alloc_pd, (struct ibv_context *c), (c), c)
RELAY(int, ibv_dealloc_pd, own_ibv_dealloc_pd, (struct ibv_pd *pd), (pd), pd->context)
RELAY(struct ibv_mr *, ibv_reg_mr, own_ibv_reg_mr, (struct ibv_pd *pd, void *at, size_t n, int access), (pd, at, n, access), pd->context)
RELAY(struct ibv_mr *, ibv_reg_mr_iova, own_ibv_reg_mr_iova, (struct ibv_pd *pd, void *at, size_t n, uint64_t iova, int access), (pd, at, n, iova, access), pd->context)
RELAY(struct ibv_mr *, ibv_reg_mr_iova2, own_ibv_reg_mr_iova2, (struct ibv_pd *pd, void *at, size_t n, uint64_t iova, unsigned int access), (pd, at, n, iova, access), pd->context)
RELAY(struct ibv_mr *, ibv_reg_dmabuf_mr, own_ibv_reg_dmabuf_mr, (struct ibv_pd *pd, uint64_t at, size_t n, uint64_t iova, int fd, int access), (pd, at, n, iova, fd, access), pd->context)
RELAY(int, ibv_rereg_mr, own_ibv_rereg_mr, (struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *at, size_t n, int access), (mr, flags, pd, at, n, access), mr->context)
RELAY(int, ibv_dereg_mr, own_ibv_dereg_mr, (struct ibv_mr *mr), (mr), mr->context)
RELAY(struct ibv_pd *, ibv_import_pd, own_ibv_import_pd, (struct ibv_context *c, uint32_t handle), (c, handle), c)
RELAY(struct ibv_mr *, ibv_import_mr, own_ibv_import_mr, (struct ibv_pd *pd, uint32_t handle), (pd, handle), pd->context)
RELAY(struct ibv_dm *, ibv_import_dm, own_ibv_import_dm, (struct ibv_context *c, uint32_t handle), (c, handle), c)
RELAY(struct ibv_comp_channel *, ibv_create_comp_channel, own_ibv_create_comp_channel, (struct ibv_context *c), (c), c)
RELAY(int, ibv_destroy_comp_channel, own_ibv_destroy_comp_channel, (struct ibv_comp_channel *ch), (ch), ch->context)
RELAY(struct ibv_cq *, ibv_create_cq, own_ibv_create_cq, (struct ibv_context *c, int n, void *own, struct ibv_comp_channel *ch, int vector), (c, n, own, ch, vector), c)
RELAY(int, ibv_resize_cq, own_ibv_resize_cq, (struct ibv_cq *cq, int n), (cq, n), cq->context)
RELAY(int, ibv_destroy_cq, own_ibv_destroy_cq, (struct ibv_cq *cq), (cq), cq->context)
RELAY(int, ibv_get_cq_event, own_ibv_get_cq_event, (struct ibv_comp_channel *ch, struct ibv_cq **cq, void **own), (ch, cq, own), ch->context)
RELAY(int, ibv_get_async_event, own_ibv_get_async_event, (struct ibv_context *c, struct ibv_async_event *e), (c, e), c)
RELAY(struct ibv_srq *, ibv_create_srq, own_ibv_create_srq, (struct ibv_pd *pd, struct ibv_srq_init_attr *a), (pd, a), pd->context)
RELAY(int, ibv_modify_srq, own_ibv_modify_srq, (struct ibv_srq *s, struct ibv_srq_attr *a, int mask), (s, a, mask), s->context)
RELAY(int, ibv_query_srq, own_ibv_query_srq, (struct ibv_srq *s, struct ibv_srq_attr *a), (s, a), s->context)
RELAY(int, ibv_destroy_srq, own_ibv_destroy_srq, (struct ibv_srq *s), (s), s->context)
RELAY(struct ibv_qp *, ibv_create_qp, own_ibv_create_qp, (struct ibv_pd *pd, struct ibv_qp_init_attr *a), (pd, a), pd->context)
RELAY(struct ibv_qp_ex *, ibv_qp_to_qp_ex, own_ibv_qp_to_qp_ex, (struct ibv_qp *q), (q), q->context)
RELAY(int, ibv_modify_qp, own_ibv_modify_qp, (struct ibv_qp *q, struct ibv_qp_attr *a, int mask), (q, a, mask), q->context)
RELAY(int, ibv_query_qp, own_ibv_query_qp, (struct ibv_qp *q, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *init), (q, a, mask, init), q->context)
RELAY(int, ibv_destroy_qp, own_ibv_destroy_qp, (struct ibv_qp *q), (q), q->context)
RELAY(int, ibv_query_qp_data_in_order, own_ibv_query_qp_data_in_order, (struct ibv_qp *q, enum ibv_wr_opcode op, uint32_t flags), (q, op, flags), q->context)
RELAY(int, ibv_query_ece, own_ibv_query_ece, (struct ibv_qp *q, struct ibv_ece *e), (q, e), q->context)
RELAY(int, ibv_set_ece, own_ibv_set_ece, (struct ibv_qp *q, struct ibv_ece *e), (q, e), q->context)
RELAY(struct ibv_ah *, ibv_create_ah, own_ibv_create_ah, (struct ibv_pd *pd, struct ibv_ah_attr *a), (pd, a), pd->context)
RELAY(int, ibv_init_ah_from_wc, own_ibv_init_ah_from_wc, (struct ibv_context *c, uint8_t port, struct ibv_wc *wc, struct ibv_grh *g, struct ibv_ah_attr *a), (c, port, wc, g, a), c)
RELAY(struct ibv_ah *, ibv_create_ah_from_wc, own_ibv_create_ah_from_wc, (struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *g, uint8_t port), (pd, wc, g, port), pd->context)
RELAY(int, ibv_destroy_ah, own_ibv_destroy_ah, (struct ibv_ah *ah), (ah), ah->context)
RELAY(int, ibv_resolve_eth_l2_from_gid, own_ibv_resolve_eth_l2_from_gid, (struct ibv_context *c, struct ibv_ah_attr *a, uint8_t mac[6], uint16_t *vlan), (c, a, mac, vlan), c)
RELAY(int, ibv_attach_mcast, own_ibv_attach_mcast, (struct ibv_qp *q, const union ibv_gid *gid, uint16_t lid), (q, gid, lid), q->context)
RELAY(int, ibv_detach_mcast, own_ibv_detach_mcast, (struct ibv_qp *q, const union ibv_gid *gid, uint16_t lid), (q, gid, lid), q->context)
RELAY_VOID(ibv_unimport_pd, own_ibv_unimport_pd, (struct ibv_pd *pd), (pd), pd->context)
RELAY_VOID(ibv_unimport_mr, own_ibv_unimport_mr, (struct ibv_mr *mr), (mr), mr->context)
RELAY_VOID(ibv_unimport_dm, own_ibv_unimport_dm, (struct ibv_dm *dm), (dm), dm->context)
RELAY_VOID(ibv_ack_cq_events, own_ibv_ack_cq_events, (struct ibv_cq *cq, unsigned int n), (cq, n), cq->context)
