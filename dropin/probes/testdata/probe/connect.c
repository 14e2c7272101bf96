#include <sys/socket.h>

#include "probe.h"

struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	CHECK(list && list[0]);
	struct ibv_context *context = ibv_open_device(list[0]);
	CHECK(context);
	ibv_free_device_list(list);
	return context;
}

struct ibv_qp_init_attr attributes(struct ibv_cq *cq, struct ibv_srq *srq)
{
	return (struct ibv_qp_init_attr){
		.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1024, .max_recv_wr = 1024, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 64},
	};
}

void make_end(struct setup *s, struct end *e, struct ibv_srq *srq)
{
	e->cq = ibv_create_cq(s->context, 4096, NULL, NULL, 0);
	CHECK(e->cq);
	struct ibv_qp_init_attr init = attributes(e->cq, srq);
	e->qp = ibv_create_qp(s->pd, &init);
	CHECK(e->qp);
}

/* Both ends are on this machine, so GID 0 is that of either. */
int receive_ready(struct setup *s, struct end *e, uint32_t number)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};
	CHECK(!ibv_modify_qp(e->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .dest_qp_num = number, .path_mtu = IBV_MTU_1024, .max_dest_rd_atomic = 16,
		.ah_attr = {.is_global = 1, .grh = {.dgid = s->gid}, .port_num = 1},
	};
	return ibv_modify_qp(e->qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

void join(struct setup *s, struct end *e, uint32_t number)
{
	CHECK(!receive_ready(s, e, number));
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .max_rd_atomic = 16, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
	CHECK(!ibv_modify_qp(e->qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

void open_all(struct setup *s)
{
	s->context = open_device();
	s->pd = ibv_alloc_pd(s->context);
	CHECK(s->pd);
	CHECK(!ibv_query_gid(s->context, 1, 0, &s->gid));
}

void connect_more(struct setup *s, struct end *a, struct end *b)
{
	make_end(s, a, NULL);
	make_end(s, b, NULL);
	join(s, a, b->qp->qp_num);
	join(s, b, a->qp->qp_num);
}

void connect_all(struct setup *s)
{
	open_all(s);
	connect_more(s, &s->a, &s->b);
}

void connect_over(struct setup *s, int socket)
{
	uint32_t theirs;
	open_all(s);
	make_end(s, &s->a, NULL);
	CHECK(send(socket, &s->a.qp->qp_num, 4, 0) == 4 && recv(socket, &theirs, 4, MSG_WAITALL) == 4);
	join(s, &s->a, theirs);
}
