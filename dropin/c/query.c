/* What the device and its port are. */
#include <stdio.h>
#include <time.h>

#include "weft.h"

/* Weft has no vendor identifier of the IEEE's: this one is locally administered. */
#define VENDOR 0x027766
#define PART 0x77656674 /* "weft" */

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *a)
{
	(void)context;
	bool rc = rc_persona();
	*a = (struct ibv_device_attr){
		.node_guid = device_guid(), .sys_image_guid = device_guid(), .max_mr_size = 1ULL << 47,
		.page_size_cap = ~0xfffULL, .vendor_id = VENDOR, .vendor_part_id = PART, .hw_ver = 1,
		.max_qp = 65536, .max_qp_wr = LIMIT_WRS,
		.device_cap_flags = IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_PORT_ACTIVE_EVENT |
				    IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS |
				    (rc ? IBV_DEVICE_RC_RNR_NAK_GEN : 0),
		.max_sge = LIMIT_SGES, .max_sge_rd = 1, .max_cq = 65536, .max_cqe = LIMIT_CQES, .max_mr = 1 << 20, .max_mw = 1 << 20,
		.max_pd = 65536, .max_qp_rd_atom = 128, .max_res_rd_atom = 128 * 65536, .max_qp_init_rd_atom = 128,
		.atomic_cap = rc ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE, .max_srq = 65536, .max_srq_wr = LIMIT_CQES,
		.max_srq_sge = LIMIT_SGES, .max_pkeys = 1, .max_ah = rc ? 65536 : 0, .phys_port_cnt = 1,
	};
	snprintf(a->fw_ver, sizeof(a->fw_ver), "weft");
	return 0;
}

int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *a, size_t size)
{
	(void)input;
	if (size < sizeof(a->orig_attr))
		return EINVAL;
	memset(a, 0, size);
	int err = ibv_query_device(context, &a->orig_attr);
	if (vext_field_avail(struct ibv_device_attr_ex, phys_port_cnt_ex, size))
		a->phys_port_cnt_ex = 1;
	if (vext_field_avail(struct ibv_device_attr_ex, hca_core_clock, size)) {
		a->completion_timestamp_mask = UINT64_MAX;
		a->hca_core_clock = 1000000; /* kHz: times are in nanoseconds */
	}
	/* Registration pins nothing, so every region is paged on demand. */
	if (rc_persona() && vext_field_avail(struct ibv_device_attr_ex, odp_caps, size)) {
		a->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
		a->odp_caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
							     IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;
	}
	return err;
}

int query_rt_values(struct ibv_context *context, struct ibv_values_ex *v)
{
	(void)context;
	if (v->comp_mask & IBV_VALUES_MASK_RAW_CLOCK && clock_gettime(CLOCK_MONOTONIC, &v->raw_clock))
		return errno;
	v->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
	return 0;
}

/* For programs that know LIDs alone (qperf): that of an rc device is the lower half of its
 * first address, and reaches the peers whose addresses have the same upper half. */
static uint16_t lid(void)
{
	struct gid table[LIMIT_GIDS];
	if (!rc_persona() || !gid_table(table))
		return 0;
	return table[0].gid.raw[14] << 8 | table[0].gid.raw[15];
}

int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *to, size_t size)
{
	(void)context;
	if (port != 1)
		return EINVAL;
	struct gid table[LIMIT_GIDS];
	struct ibv_port_attr a = {
		.state = IBV_PORT_ACTIVE, .max_mtu = IBV_MTU_4096, .active_mtu = rc_persona() ? IBV_MTU_4096 : IBV_MTU_1024,
		.gid_tbl_len = gid_table(table), .max_msg_sz = UINT32_MAX, .pkey_tbl_len = 1, .max_vl_num = 1, .lid = lid(),
		.active_width = 2, .active_speed = 1, .phys_state = 5, .link_layer = IBV_LINK_LAYER_ETHERNET,
		.port_cap_flags = rc_persona() ? IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS : IBV_PORT_CM_SUP,
	};
	memset(to, 0, size);
	memcpy(to, &a, size < sizeof(a) ? size : sizeof(a));
	return 0;
}

/* For programs that were built before query_port was in the context: the structure ended earlier. */
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *a)
{
	return query_port(context, port, (struct ibv_port_attr *)a, offsetof(struct ibv_port_attr, port_cap_flags2));
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	(void)context;
	struct gid table[LIMIT_GIDS];
	if (port != 1 || index < 0 || index >= gid_table(table)) {
		errno = EINVAL;
		return -1;
	}
	*gid = table[index].gid;
	return 0;
}

static uint32_t gid_type(void) { return rc_persona() ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB; }

static void fill_entry(struct ibv_gid_entry *e, const struct gid *g, uint32_t index, size_t size)
{
	struct ibv_gid_entry entry = {
		.gid = g->gid, .gid_index = index, .port_num = 1, .gid_type = gid_type(), .ndev_ifindex = g->interface,
	};
	memcpy(e, &entry, size < sizeof(entry) ? size : sizeof(entry));
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *e, uint32_t flags, size_t size)
{
	(void)context;
	struct gid table[LIMIT_GIDS];
	if (flags)
		return refuse("ibv_query_gid_ex: flags %#x are not known", flags);
	if (port != 1 || index >= (uint32_t)gid_table(table))
		return EINVAL;
	fill_entry(e, &table[index], index, size);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t room, uint32_t flags, size_t size)
{
	(void)context;
	struct gid table[LIMIT_GIDS];
	if (flags)
		return -refuse("ibv_query_gid_table: flags %#x are not known", flags);
	size_t n = gid_table(table);
	if (n > room)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		fill_entry((struct ibv_gid_entry *)((uint8_t *)entries + i * size), &table[i], i, size);
	return n;
}

/* Of the distribution's tools. 2 is RoCE v2 where 0 is both InfiniBand's and RoCE v1's. */
int own_ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type)
{
	struct gid table[LIMIT_GIDS];
	(void)context;
	if (port != 1 || index >= (unsigned)gid_table(table)) {
		errno = EINVAL;
		return -1;
	}
	*type = rc_persona() ? 1 : 0;
	return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *key)
{
	(void)context;
	if (port != 1 || index) {
		errno = EINVAL;
		return -1;
	}
	*key = 0xffff;
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 key)
{
	(void)context;
	if (port != 1 || key != 0xffff) {
		errno = EINVAL;
		return -1;
	}
	return 0;
}
