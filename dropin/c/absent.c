/* What the device does not have. Each call says why, if the user wants to know. */
#include "weft.h"

static int no_datagrams(const char *call) { return refuse("%s: there are no datagrams and no multicast, only connections (RC)", call); }
static int no_raw_packets(const char *call) { return refuse("%s: there are no raw packets, so no flows and work queues of them", call); }
static int no_counters(const char *call) { return refuse("%s: the device has no counters for flows and completions", call); }
static int no_speed(const char *call) { return refuse("%s: the speed is that of TCP, and in ibv_query_port", call); }
static int no_device_memory(const char *call) { return refuse("%s: a software device has no memory of its own", call); }
static int no_xrc(const char *call) { return refuse("%s: there are no extended connections (XRC), only RC", call); }

/* A call that refuses; of those that make something the result is NULL, with errno. */
#define REFUSE(name, parameters, reason) static int name parameters { return reason("ibv_" #name); }
#define REFUSE_NEW(type, name, parameters, reason) static type *name parameters { return reason("ibv_" #name), NULL; }

#define UNUSED __attribute__((unused))
REFUSE(read_counters, (struct ibv_counters *c UNUSED, uint64_t *to UNUSED, uint32_t n UNUSED, uint32_t flags UNUSED), no_counters)
REFUSE(attach_counters_point_flow, (struct ibv_counters *c UNUSED, struct ibv_counter_attach_attr *a UNUSED, struct ibv_flow *f UNUSED), no_counters)
REFUSE_NEW(struct ibv_counters, create_counters, (struct ibv_context *c UNUSED, struct ibv_counters_init_attr *a UNUSED), no_counters)
REFUSE(destroy_counters, (struct ibv_counters *c UNUSED), no_counters)
REFUSE_NEW(struct ibv_mr, reg_dm_mr, (struct ibv_pd *pd UNUSED, struct ibv_dm *dm UNUSED, uint64_t at UNUSED, size_t n UNUSED, unsigned access UNUSED), no_device_memory)
REFUSE_NEW(struct ibv_dm, alloc_dm, (struct ibv_context *c UNUSED, struct ibv_alloc_dm_attr *a UNUSED), no_device_memory)
REFUSE(free_dm, (struct ibv_dm *dm UNUSED), no_device_memory)
REFUSE(modify_flow_action_esp, (struct ibv_flow_action *f UNUSED, struct ibv_flow_action_esp_attr *a UNUSED), no_raw_packets)
REFUSE(destroy_flow_action, (struct ibv_flow_action *f UNUSED), no_raw_packets)
REFUSE_NEW(struct ibv_flow_action, create_flow_action_esp, (struct ibv_context *c UNUSED, struct ibv_flow_action_esp_attr *a UNUSED), no_raw_packets)
REFUSE(modify_qp_rate_limit, (struct ibv_qp *q UNUSED, struct ibv_qp_rate_limit_attr *a UNUSED), no_raw_packets)
REFUSE(destroy_rwq_ind_table, (struct ibv_rwq_ind_table *t UNUSED), no_raw_packets)
REFUSE_NEW(struct ibv_rwq_ind_table, create_rwq_ind_table, (struct ibv_context *c UNUSED, struct ibv_rwq_ind_table_init_attr *a UNUSED), no_raw_packets)
REFUSE(destroy_wq, (struct ibv_wq *q UNUSED), no_raw_packets)
REFUSE(modify_wq, (struct ibv_wq *q UNUSED, struct ibv_wq_attr *a UNUSED), no_raw_packets)
REFUSE_NEW(struct ibv_wq, create_wq, (struct ibv_context *c UNUSED, struct ibv_wq_init_attr *a UNUSED), no_raw_packets)
REFUSE(destroy_flow, (struct ibv_flow *f UNUSED), no_raw_packets)
REFUSE_NEW(struct ibv_flow, create_flow, (struct ibv_qp *q UNUSED, struct ibv_flow_attr *a UNUSED), no_raw_packets)
REFUSE_NEW(struct ibv_qp, open_qp, (struct ibv_context *c UNUSED, struct ibv_qp_open_attr *a UNUSED), no_xrc)
REFUSE_NEW(struct ibv_xrcd, open_xrcd, (struct ibv_context *c UNUSED, struct ibv_xrcd_init_attr *a UNUSED), no_xrc)
REFUSE(close_xrcd, (struct ibv_xrcd *x UNUSED), no_xrc)

static int post_srq_ops(struct ibv_srq *srq UNUSED, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad)
{
	*bad = wr;
	return refuse("ibv_post_srq_ops: a shared receive queue matches no tags");
}

void fill_absent(struct verbs_context *v)
{
	v->read_counters = read_counters;
	v->attach_counters_point_flow = attach_counters_point_flow;
	v->create_counters = create_counters;
	v->destroy_counters = destroy_counters;
	v->reg_dm_mr = reg_dm_mr;
	v->alloc_dm = alloc_dm;
	v->free_dm = free_dm;
	v->modify_flow_action_esp = modify_flow_action_esp;
	v->destroy_flow_action = destroy_flow_action;
	v->create_flow_action_esp = create_flow_action_esp;
	v->modify_qp_rate_limit = modify_qp_rate_limit;
	v->post_srq_ops = post_srq_ops;
	v->destroy_rwq_ind_table = destroy_rwq_ind_table;
	v->create_rwq_ind_table = create_rwq_ind_table;
	v->destroy_wq = destroy_wq;
	v->modify_wq = modify_wq;
	v->create_wq = create_wq;
	v->ibv_destroy_flow = destroy_flow;
	v->ibv_create_flow = create_flow;
	v->open_qp = open_qp;
	v->open_xrcd = open_xrcd;
	v->close_xrcd = close_xrcd;
}

int ibv_init_ah_from_wc(struct ibv_context *c UNUSED, uint8_t port UNUSED, struct ibv_wc *wc UNUSED, struct ibv_grh *grh UNUSED, struct ibv_ah_attr *a UNUSED)
{
	no_datagrams("ibv_init_ah_from_wc");
	return -1;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd UNUSED, struct ibv_wc *wc UNUSED, struct ibv_grh *grh UNUSED, uint8_t port UNUSED)
{
	no_datagrams("ibv_create_ah_from_wc");
	return NULL;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *c UNUSED, struct ibv_ah_attr *a UNUSED, uint8_t mac[6] UNUSED, uint16_t *vlan UNUSED)
{
	return no_datagrams("ibv_resolve_eth_l2_from_gid");
}

int ibv_attach_mcast(struct ibv_qp *qp UNUSED, const union ibv_gid *gid UNUSED, uint16_t lid UNUSED) { return no_datagrams("ibv_attach_mcast"); }
int ibv_detach_mcast(struct ibv_qp *qp UNUSED, const union ibv_gid *gid UNUSED, uint16_t lid UNUSED) { return no_datagrams("ibv_detach_mcast"); }

/* The device copies: pages that a child copies on write do no harm. */
int ibv_fork_init(void) { return 0; }
enum ibv_fork_status ibv_is_fork_initialized(void) { return IBV_FORK_UNNEEDED; }
int ibv_dontfork_range(void *base, size_t size) { return (void)base, (void)size, 0; }
int ibv_dofork_range(void *base, size_t size) { return (void)base, (void)size, 0; }

/* What libraries newer than the headers have: memory of a device, hints for it, and counters. A program that is linked
 * with one of these finds it, and is refused. */
#define NEWER(name, reason) int name(void); int name(void) { return reason(#name); }
#define NEWER_NEW(name, reason) void *name(void); void *name(void) { return reason(#name), NULL; }
NEWER_NEW(ibv_alloc_dmah, no_device_memory)
NEWER(ibv_dealloc_dmah, no_device_memory)
NEWER_NEW(ibv_reg_mr_ex, no_device_memory)
NEWER(ibv_dm_export_dmabuf_fd, no_device_memory)
NEWER(ibv_query_port_speed, no_speed)
NEWER_NEW(ibv_alloc_buf, no_device_memory)
NEWER(ibv_free_buf, no_device_memory)
NEWER_NEW(ibv_reg_buf_mr, no_device_memory)
NEWER(ibv_export_buf_dmabuf_fd, no_device_memory)
NEWER(_ibv_query_comp_cntr_caps, no_counters)
NEWER_NEW(ibv_create_comp_cntr, no_counters)
NEWER(ibv_destroy_comp_cntr, no_counters)
NEWER(ibv_inc_comp_cntr, no_counters)
NEWER(ibv_inc_err_comp_cntr, no_counters)
NEWER(ibv_qp_attach_comp_cntr, no_counters)
NEWER(ibv_read_comp_cntr, no_counters)
NEWER(ibv_read_err_comp_cntr, no_counters)
NEWER(ibv_set_comp_cntr, no_counters)
NEWER(ibv_set_err_comp_cntr, no_counters)
