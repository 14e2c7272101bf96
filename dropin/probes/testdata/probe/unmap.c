/* Memory that the program has registered and then takes away. Requests that use it fail,
 * and nothing else does. */
#include <fcntl.h>
#include <signal.h>

#include "probe.h"

/* What the program does to the memory. */
static void unmap(void *at, size_t n, int fd)
{
	(void)fd;
	CHECK(!munmap(at, n));
}

static void protect(void *at, size_t n, int fd)
{
	(void)fd;
	CHECK(!mprotect(at, n, PROT_NONE));
}

static void truncate_file(void *at, size_t n, int fd)
{
	(void)at, (void)n;
	CHECK(!ftruncate(fd, 0));
}

typedef void (*spoiler)(void *, size_t, int fd);
static const spoiler spoilers[] = {unmap, protect, truncate_file};
#define SPOILERS (sizeof(spoilers) / sizeof(*spoilers))
#define ROOM (1 << 20)

/* Memory of a file, which can be truncated. */
static struct ibv_mr *file_memory(struct setup *s, void **at, int *fd)
{
	*fd = memfd_create("probe", MFD_CLOEXEC);
	CHECK(*fd >= 0 && !ftruncate(*fd, ROOM));
	*at = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	CHECK(*at != MAP_FAILED);
	struct ibv_mr *mr = ibv_reg_mr(s->pd, *at, ROOM, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(mr);
	return mr;
}

/* An operation between spoiled memory and whole memory, at end a. */
static void spoiled(enum ibv_wr_opcode op, bool target, uint32_t n, spoiler spoil, bool shared)
{
	struct setup s;
	open_all(&s);
	struct ibv_srq *srq = NULL;
	if (shared) {
		struct ibv_srq_init_attr a = {.attr = {.max_wr = 16, .max_sge = 1}};
		srq = ibv_create_srq(s.pd, &a);
		CHECK(srq);
	}
	make_end(&s, &s.a, NULL);
	make_end(&s, &s.b, srq);
	join(&s, &s.a, s.b.qp->qp_num);
	join(&s, &s.b, s.a.qp->qp_num);
	void *whole, *bad;
	int fd;
	struct ibv_mr *good = memory(&s, ROOM, &whole), *gone = file_memory(&s, &bad, &fd);
	use(&s); /* the stream is there */
	void *from = target ? whole : bad, *to = target ? bad : whole;
	struct ibv_mr *mine = target ? good : gone, *theirs = target ? gone : good;
	if (op == IBV_WR_SEND)
		CHECK(!receive(s.b.qp, to, theirs, ROOM));
	spoil(bad, ROOM, fd);
	CHECK(!post(s.a.qp, op, from, mine, n, to, theirs));
	CHECK(next(s.a.cq).status != IBV_WC_SUCCESS);
	if (op == IBV_WR_SEND && target) /* a receiver does not notice that its peer is gone */
		CHECK(next(s.b.cq).status != IBV_WC_SUCCESS);
	CHECK(!ibv_dereg_mr(good) && !ibv_dereg_mr(gone));
	CHECK(!ibv_destroy_qp(s.a.qp) && !ibv_destroy_qp(s.b.qp));
	if (srq)
		CHECK(!ibv_destroy_srq(srq));
	CHECK(!ibv_destroy_cq(s.a.cq) && !ibv_destroy_cq(s.b.cq) && !ibv_dealloc_pd(s.pd) && !ibv_close_device(s.context));
	close(fd);
}

static void every_way(enum ibv_wr_opcode op, bool target, bool shared)
{
	static const uint32_t lengths[] = {8, 512, 5000, 1 << 16, ROOM};
	bool atomic = op == IBV_WR_ATOMIC_FETCH_AND_ADD;
	for (size_t i = 0; i < (atomic ? 1 : sizeof(lengths) / sizeof(*lengths)); i++)
		for (size_t j = 0; j < SPOILERS; j++)
			spoiled(op, target, lengths[i], spoilers[j], shared);
	struct setup s;
	connect_all(&s);
	use(&s);
}

PROBE(unmap_write_source) { every_way(IBV_WR_RDMA_WRITE, false, false); }
PROBE(unmap_write_target) { every_way(IBV_WR_RDMA_WRITE, true, false); }
PROBE(unmap_send_source) { every_way(IBV_WR_SEND, false, false); }
PROBE(unmap_receive) { every_way(IBV_WR_SEND, true, false); }
PROBE(unmap_shared_receive) { every_way(IBV_WR_SEND, true, true); }
PROBE(unmap_read_sink) { every_way(IBV_WR_RDMA_READ, false, false); }
PROBE(unmap_read_source) { every_way(IBV_WR_RDMA_READ, true, false); }
PROBE(unmap_atomic_result) { every_way(IBV_WR_ATOMIC_FETCH_AND_ADD, false, false); }
PROBE(unmap_atomic_target) { every_way(IBV_WR_ATOMIC_FETCH_AND_ADD, true, false); }

static void sends_inline_what_is_not_there(void)
{
	struct setup s;
	connect_all(&s);
	struct ibv_sge sge = {.addr = 4096, .length = 8};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_INLINE};
	ibv_post_send(s.a.qp, &wr, &bad);
}

/* Inline data is read by the post itself: a fault there is the program's own. */
PROBE(unmap_inline) { CHECK(in_child(sends_inline_what_is_not_there) == 128 + SIGSEGV); }

/* Memory that cannot be is not registered. */
PROBE(register_nonsense)
{
	struct setup s;
	void *at;
	open_all(&s);
	memory(&s, 4096, &at);
	static const struct {
		uintptr_t addr;
		size_t length;
	} bad[] = {{0, 4096}, {4096, SIZE_MAX}, {4096, SIZE_MAX / 2 + 1}, {UINTPTR_MAX - 10, 4096}, {UINTPTR_MAX, SIZE_MAX}, {0, SIZE_MAX}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		errno = 0;
		CHECK(!ibv_reg_mr(s.pd, (void *)bad[i].addr, bad[i].length, IBV_ACCESS_LOCAL_WRITE));
		CHECK(errno == EINVAL || errno == EFAULT || errno == ENOMEM);
	}
	struct ibv_mr *mr = ibv_reg_mr(s.pd, at, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 4096, 0));
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, at, SIZE_MAX, 0));
	CHECK(!ibv_dereg_mr(mr));
}
