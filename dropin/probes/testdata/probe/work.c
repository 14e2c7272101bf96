#include "probe.h"

struct ibv_wc next(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;
	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		sched_yield();
	CHECK(n == 1);
	return wc;
}

struct ibv_mr *memory(struct setup *s, size_t length, void **at)
{
	*at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(*at != MAP_FAILED);
	struct ibv_mr *mr = ibv_reg_mr(s->pd, *at, length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(mr);
	return mr;
}

int post(struct ibv_qp *qp, enum ibv_wr_opcode op, void *at, struct ibv_mr *mr, uint32_t n, void *to, struct ibv_mr *there)
{
	struct ibv_sge sge = {.addr = (uintptr_t)at, .length = n, .lkey = mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = op, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)to;
		wr.wr.atomic.rkey = there->rkey;
	} else if (there) {
		wr.wr.rdma.remote_addr = (uintptr_t)to;
		wr.wr.rdma.rkey = there->rkey;
	}
	return ibv_post_send(qp, &wr, &bad);
}

int receive(struct ibv_qp *qp, void *at, struct ibv_mr *mr, uint32_t n)
{
	struct ibv_sge sge = {.addr = (uintptr_t)at, .length = n, .lkey = mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
	return qp->srq ? ibv_post_srq_recv(qp->srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);
}

void use(struct setup *s)
{
	void *from, *to;
	struct ibv_mr *a = memory(s, 4096, &from), *b = memory(s, 4096, &to);
	strcpy(from, "hello");
	CHECK(!post(s->a.qp, IBV_WR_RDMA_WRITE, from, a, 6, to, b));
	CHECK(next(s->a.cq).status == IBV_WC_SUCCESS);
	CHECK(!strcmp(to, "hello"));
	CHECK(!ibv_dereg_mr(a) && !ibv_dereg_mr(b));
	CHECK(!munmap(from, 4096) && !munmap(to, 4096));
}
