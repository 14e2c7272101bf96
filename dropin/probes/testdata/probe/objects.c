/* Objects that are in use, and objects that are destroyed with work outstanding. */
#include <fcntl.h>
#include <poll.h>

#include "probe.h"

/* What others depend on is not destroyed. */
PROBE(busy)
{
	struct setup s;
	open_all(&s);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(s.context);
	struct ibv_cq *cq = ibv_create_cq(s.context, 16, NULL, channel, 0);
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(s.pd, &shared);
	CHECK(channel && cq && srq);
	struct ibv_qp_init_attr init = attributes(cq, srq);
	struct ibv_qp *qp = ibv_create_qp(s.pd, &init);
	CHECK(qp);
	CHECK(ibv_destroy_cq(cq) == EBUSY);
	CHECK(ibv_destroy_srq(srq) == EBUSY);
	CHECK(ibv_destroy_comp_channel(channel) == EBUSY);
	CHECK(ibv_dealloc_pd(s.pd) == EBUSY);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(ibv_dealloc_pd(s.pd) == EBUSY);
	CHECK(!ibv_destroy_srq(srq) && !ibv_destroy_cq(cq) && !ibv_destroy_comp_channel(channel));
	void *at;
	struct ibv_mr *mr = memory(&s, 4096, &at);
	CHECK(ibv_dealloc_pd(s.pd) == EBUSY);
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_dealloc_pd(s.pd) && !ibv_close_device(s.context));
}

#define LARGE (1 << 20)

/* Deregistration waits for what is in flight: the memory can go right after. */
PROBE(deregister_in_flight)
{
	for (int i = 0; i < 20; i++) {
		struct setup s;
		connect_all(&s);
		void *from, *to;
		struct ibv_mr *a = memory(&s, LARGE, &from), *b = memory(&s, LARGE, &to);
		for (int n = 0; n < 16; n++)
			CHECK(!post(s.a.qp, i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, from, a, LARGE, to, b));
		if (i % 4 < 2) {
			CHECK(!ibv_dereg_mr(a) && !munmap(from, LARGE) && !ibv_dereg_mr(b) && !munmap(to, LARGE));
		} else {
			CHECK(!ibv_dereg_mr(b) && !munmap(to, LARGE) && !ibv_dereg_mr(a) && !munmap(from, LARGE));
		}
		for (int n = 0; n < 16; n++)
			next(s.a.cq);
		CHECK(!ibv_destroy_qp(s.a.qp) && !ibv_destroy_qp(s.b.qp));
	}
}

/* A queue pair goes with requests under way, in either order; its memory right after. */
PROBE(destroy_in_flight)
{
	for (int i = 0; i < 20; i++) {
		struct setup s;
		connect_all(&s);
		void *from, *to;
		struct ibv_mr *a = memory(&s, LARGE, &from), *b = memory(&s, LARGE, &to);
		for (int n = 0; n < 16; n++) {
			CHECK(!receive(s.b.qp, to, b, LARGE));
			CHECK(!post(s.a.qp, IBV_WR_SEND, from, a, LARGE, NULL, NULL));
		}
		struct ibv_qp *first = i % 2 ? s.a.qp : s.b.qp, *second = i % 2 ? s.b.qp : s.a.qp;
		CHECK(!ibv_destroy_qp(first));
		CHECK(!ibv_destroy_qp(second));
		CHECK(!ibv_dereg_mr(a) && !munmap(from, LARGE) && !ibv_dereg_mr(b) && !munmap(to, LARGE));
		CHECK(!ibv_destroy_cq(s.a.cq) && !ibv_destroy_cq(s.b.cq) && !ibv_dealloc_pd(s.pd) && !ibv_close_device(s.context));
	}
}

/* A device that is closed while its objects live writes into no descriptor of the
 * program's, which may have got the same number. */
PROBE(close_with_objects)
{
	struct setup s, closed;
	open_all(&s);
	open_all(&closed);
	make_end(&s, &s.a, NULL);
	make_end(&closed, &closed.a, NULL);
	join(&s, &s.a, closed.a.qp->qp_num);
	join(&closed, &closed.a, s.a.qp->qp_num);
	void *at, *theirs;
	struct ibv_mr *mr = memory(&s, 4096, &at), *there = memory(&closed, 4096, &theirs);
	CHECK(!post(s.a.qp, IBV_WR_RDMA_WRITE, at, mr, 64, theirs, there));
	CHECK(next(s.a.cq).status == IBV_WC_SUCCESS);
	CHECK(!ibv_close_device(closed.context));
	int mine[64][2];
	for (int i = 0; i < 64; i++)
		CHECK(!pipe2(mine[i], O_NONBLOCK));
	/* Beyond the memory, which is an event at the other end. */
	CHECK(!post(s.a.qp, IBV_WR_RDMA_WRITE, at, mr, 64, (uint8_t *)theirs + 8192, there));
	CHECK(next(s.a.cq).status != IBV_WC_SUCCESS);
	for (int i = 0; i < 64; i++) {
		struct pollfd p = {.fd = mine[i][0], .events = POLLIN};
		CHECK(poll(&p, 1, 0) == 0);
	}
}
