/* Asks for what the device does not have. Prints the names of calls that did not answer
 * EOPNOTSUPP; the exit status is 1 then. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>

static int wrong;

static void check(const char *call, int refused)
{
	if (refused)
		return;
	printf("%s: %d\n", call, errno);
	wrong = 1;
}

#define REFUSED(call) (errno = 0, check(#call, (call) == EOPNOTSUPP))
#define REFUSED_NEW(call) (errno = 0, check(#call, !(call) && errno == EOPNOTSUPP))

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = ibv_open_device(list[0]);
	if (!c)
		return 2;
	struct ibv_pd *pd = ibv_alloc_pd(c);
	struct ibv_cq *cq = ibv_create_cq(c, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr qp = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = {1, 1, 1, 1, 0}};
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_xrcd_init_attr xrcd = {.comp_mask = 0};
	struct ibv_wq_init_attr wq = {.wq_type = IBV_WQT_RQ, .pd = pd, .cq = cq};
	struct ibv_counters_init_attr counters = {0};
	struct ibv_wc wc = {0};
	struct ibv_grh grh = {0};
	struct ibv_modify_cq_attr moderation = {.attr_mask = IBV_CQ_ATTR_MODERATE};
	REFUSED_NEW(ibv_create_qp(pd, &qp));
	REFUSED_NEW(ibv_alloc_dm(c, &dm));
	REFUSED_NEW(ibv_open_xrcd(c, &xrcd));
	REFUSED_NEW(ibv_create_wq(c, &wq));
	REFUSED_NEW(ibv_create_counters(c, &counters));
	REFUSED_NEW(ibv_create_ah_from_wc(pd, &wc, &grh, 1));
	REFUSED_NEW(ibv_import_dm(c, 1));
	REFUSED_NEW(ibv_import_device(0));
	REFUSED(ibv_modify_cq(cq, &moderation));
	return wrong;
}
