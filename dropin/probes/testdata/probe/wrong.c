/* Requests and calls that are wrong: the program learns so, by the call or by a completion,
 * and never waits for ever. */
#include <poll.h>

#include "probe.h"

static int post_write(struct setup *s, struct ibv_mr *mr, void *at, uint32_t key, unsigned flags)
{
	struct ibv_sge sge = {.addr = (uintptr_t)at, .length = 8, .lkey = mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = 7, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1, .send_flags = flags};
	wr.wr.rdma.remote_addr = (uintptr_t)at;
	wr.wr.rdma.rkey = key;
	return ibv_post_send(s->a.qp, &wr, &bad);
}

/* A request that the peer refuses completes, although no completion was asked for, and both
 * ends flush their receives. */
PROBE(refused_unsignaled)
{
	struct setup s;
	void *at;
	connect_all(&s);
	struct ibv_mr *mr = memory(&s, 4096, &at);
	use(&s);
	CHECK(!receive(s.a.qp, at, mr, 8) && !receive(s.b.qp, at, mr, 8));
	CHECK(!post_write(&s, mr, at, mr->rkey ^ 0xff, 0));
	struct ibv_wc wc = next(s.a.cq);
	CHECK(wc.wr_id == 7 && wc.status == IBV_WC_REM_ACCESS_ERR);
	CHECK(next(s.a.cq).status == IBV_WC_WR_FLUSH_ERR);
	CHECK(next(s.b.cq).status == IBV_WC_WR_FLUSH_ERR);
	CHECK(!ibv_destroy_qp(s.a.qp) && !ibv_destroy_qp(s.b.qp));
}

/* An atomic has 8 octets. */
PROBE(atomic_length)
{
	struct setup s;
	void *at;
	connect_all(&s);
	struct ibv_mr *mr = memory(&s, 4096, &at);
	CHECK(post(s.a.qp, IBV_WR_ATOMIC_FETCH_AND_ADD, at, mr, 4, at, mr) == EINVAL);
	CHECK(!post(s.a.qp, IBV_WR_ATOMIC_FETCH_AND_ADD, at, mr, 8, at, mr));
	CHECK(next(s.a.cq).status == IBV_WC_SUCCESS);
}

/* Both ends of a connection are reset and connected anew, many times. */
PROBE(connected_anew)
{
	struct setup s;
	connect_all(&s);
	for (int i = 0; i < 30; i++) {
		use(&s);
		struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
		CHECK(!ibv_modify_qp(s.a.qp, &reset, IBV_QP_STATE));
		CHECK(!ibv_modify_qp(s.b.qp, &reset, IBV_QP_STATE));
		join(&s, &s.a, s.b.qp->qp_num);
		join(&s, &s.b, s.a.qp->qp_num);
	}
}

static int change(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = {.qp_state = state, .port_num = 1};
	return ibv_modify_qp(qp, &a, IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS : 0));
}

/* States come in their order. */
PROBE(states)
{
	struct setup s;
	open_all(&s);
	make_end(&s, &s.a, NULL);
	CHECK(change(s.a.qp, IBV_QPS_RESET) == 0);
	CHECK(change(s.a.qp, IBV_QPS_RTR) == EINVAL && change(s.a.qp, IBV_QPS_RTS) == EINVAL);
	CHECK(change(s.a.qp, IBV_QPS_INIT) == 0);
	CHECK(change(s.a.qp, IBV_QPS_RTS) == EINVAL && change(s.a.qp, IBV_QPS_SQD) == EINVAL);
	struct ibv_qp_attr lonely = {.qp_state = IBV_QPS_RTR, .ah_attr = {.is_global = 1, .grh = {.dgid = s.gid}, .port_num = 1}};
	CHECK(ibv_modify_qp(s.a.qp, &lonely, IBV_QP_STATE | IBV_QP_AV) == EINVAL);
	CHECK(change(s.a.qp, IBV_QPS_ERR) == 0);
	CHECK(change(s.a.qp, IBV_QPS_INIT) == EINVAL && change(s.a.qp, IBV_QPS_RTS) == EINVAL);
	CHECK(change(s.a.qp, IBV_QPS_RESET) == 0 && change(s.a.qp, IBV_QPS_INIT) == 0);
}

static int readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, 0);
}

/* A descriptor is not readable for events of what has been destroyed: the program would
 * wait for them. */
PROBE(events_of_the_destroyed)
{
	struct setup s;
	void *at;
	connect_all(&s);
	struct ibv_mr *mr = memory(&s, 4096, &at);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(s.context);
	struct ibv_cq *cq = ibv_create_cq(s.context, 16, NULL, channel, 0);
	struct ibv_qp_init_attr init = attributes(cq, NULL);
	struct ibv_qp *qp = ibv_create_qp(s.pd, &init);
	CHECK(qp && !ibv_req_notify_cq(cq, 0));
	CHECK(!change(qp, IBV_QPS_INIT) && !receive(qp, at, mr, 8) && !change(qp, IBV_QPS_ERR));
	CHECK(next(cq).status == IBV_WC_WR_FLUSH_ERR);
	CHECK(readable(channel->fd));
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
	CHECK(!readable(channel->fd));

	CHECK(!receive(s.b.qp, at, mr, 8));
	CHECK(!post_write(&s, mr, at, mr->rkey ^ 0xff, IBV_SEND_SIGNALED));
	CHECK(next(s.a.cq).status == IBV_WC_REM_ACCESS_ERR);
	while (!readable(s.context->async_fd))
		sched_yield();
	CHECK(!ibv_destroy_qp(s.a.qp) && !ibv_destroy_qp(s.b.qp));
	CHECK(!readable(s.context->async_fd));
}
