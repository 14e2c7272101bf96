/* What the device does not have: address handles are for datagrams, which iWARP
 * does not know. */
#include "weft.h"

static void *refused(const char *what)
{
	explain("%s: there are no datagrams and no multicast, only connections (RC)", what);
	errno = EOPNOTSUPP;
	return NULL;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *a) { return (void)pd, (void)a, refused("ibv_create_ah"); }

int ibv_init_ah_from_wc(struct ibv_context *c, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh, struct ibv_ah_attr *a)
{
	(void)c, (void)port, (void)wc, (void)grh, (void)a;
	refused("ibv_init_ah_from_wc");
	return -1;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
	(void)pd, (void)wc, (void)grh, (void)port;
	return refused("ibv_create_ah_from_wc");
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	(void)ah;
	return EOPNOTSUPP;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *c, struct ibv_ah_attr *a, uint8_t mac[6], uint16_t *vlan)
{
	(void)c, (void)a, (void)mac, (void)vlan;
	return EOPNOTSUPP;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp, (void)gid, (void)lid;
	refused("ibv_attach_mcast");
	return EOPNOTSUPP;
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp, (void)gid, (void)lid;
	return EOPNOTSUPP;
}

/* The device copies: pages that a child copies on write do no harm. */
int ibv_fork_init(void) { return 0; }
enum ibv_fork_status ibv_is_fork_initialized(void) { return IBV_FORK_UNNEEDED; }
int ibv_dontfork_range(void *base, size_t size) { return (void)base, (void)size, 0; }
int ibv_dofork_range(void *base, size_t size) { return (void)base, (void)size, 0; }
