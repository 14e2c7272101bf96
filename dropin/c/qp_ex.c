/* Posting one field at a time: ibv_wr_start, ibv_wr_*, ibv_wr_complete. Requests
 * are put together as those of ibv_post_send and posted the same way. */
#include "weft.h"

/* What is being built between wr_start and wr_complete; the queue's lock is held. */
static struct weft_send *begin(struct ibv_qp_ex *base, enum weft_op op, enum ibv_wc_opcode completion)
{
	struct qp *qp = qp_of(&base->qp_base);
	struct weft_send *s = qp->failed ? NULL : send_slot(qp, qp->building);
	if (!s) {
		if (!qp->failed)
			qp->failed = ENOMEM;
		return NULL;
	}
	uint32_t slot = qp->building & qp->send.queue.mask;
	unsigned flags = base->wr_flags;
	memset(s, 0, sizeof(*s));
	s->id = qp->building++;
	s->op = op;
	s->flags = (qp->signal_all || flags & IBV_SEND_SIGNALED ? WEFT_SIGNALED : 0) |
		   (flags & IBV_SEND_SOLICITED ? WEFT_SOLICITED : 0) | (flags & IBV_SEND_FENCE ? WEFT_FENCE : 0);
	qp->send.ids[slot] = base->wr_id;
	qp->send.ops[slot] = completion;
	return s;
}

/* The request whose data is being set. */
static struct weft_send *last(struct qp *qp) { return qp->failed ? NULL : send_slot(qp, qp->building - 1); }

static void wr_rdma(struct ibv_qp_ex *base, enum weft_op op, enum ibv_wc_opcode completion, uint32_t key, uint64_t addr, __be32 imm)
{
	struct weft_send *s = begin(base, op, completion);
	if (!s)
		return;
	s->remote_key = key;
	s->remote = addr;
	s->immediate = imm;
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t key, uint64_t addr) { wr_rdma(qp, WEFT_WRITE, IBV_WC_RDMA_WRITE, key, addr, 0); }
static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t key, uint64_t addr) { wr_rdma(qp, WEFT_READ, IBV_WC_RDMA_READ, key, addr, 0); }
static void wr_send(struct ibv_qp_ex *qp) { wr_rdma(qp, WEFT_SEND, IBV_WC_SEND, 0, 0, 0); }
static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm) { wr_rdma(qp, WEFT_SEND_IMMEDIATE, IBV_WC_SEND, 0, 0, imm); }
static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t key) { wr_rdma(qp, WEFT_SEND_INVALIDATE, IBV_WC_SEND, 0, 0, key); }
static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t key) { wr_rdma(qp, WEFT_INVALIDATE, IBV_WC_LOCAL_INV, 0, 0, key); }

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t key, uint64_t addr, __be32 imm)
{
	wr_rdma(qp, WEFT_WRITE_IMMEDIATE, IBV_WC_RDMA_WRITE, key, addr, imm);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t key, uint64_t addr, uint64_t compare, uint64_t swap)
{
	struct weft_send *s = begin(qp, WEFT_COMPARE_SWAP, IBV_WC_COMP_SWAP);
	if (!s)
		return;
	s->remote_key = key;
	s->remote = addr;
	s->compare = compare;
	s->operand = swap;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t key, uint64_t addr, uint64_t add)
{
	struct weft_send *s = begin(qp, WEFT_FETCH_ADD, IBV_WC_FETCH_ADD);
	if (!s)
		return;
	s->remote_key = key;
	s->remote = addr;
	s->operand = add;
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t key, const struct ibv_mw_bind_info *b)
{
	struct weft_send *s = begin(qp, WEFT_BIND, IBV_WC_BIND_MW);
	if (!s)
		return;
	s->remote_key = mw->rkey;
	s->immediate = key;
	s->region = b->mr ? b->mr->rkey : 0;
	s->remote = b->addr;
	s->operand = b->length;
	s->compare = b->mw_access_flags;
}

static void wr_set_sge_list(struct ibv_qp_ex *base, size_t n, const struct ibv_sge *list)
{
	struct qp *qp = qp_of(&base->qp_base);
	struct weft_send *s = last(qp);
	if (!s)
		return;
	if (n > qp->send.sges) {
		qp->failed = EINVAL;
		return;
	}
	s->sges = n;
	for (size_t i = 0; i < n; i++)
		s->sge[i] = (struct weft_sge){.addr = list[i].addr, .key = list[i].lkey, .length = list[i].length};
}

static void wr_set_sge(struct ibv_qp_ex *base, uint32_t key, uint64_t addr, uint32_t length)
{
	struct ibv_sge one = {.addr = addr, .length = length, .lkey = key};
	wr_set_sge_list(base, 1, &one);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *base, size_t n, const struct ibv_data_buf *list)
{
	struct qp *qp = qp_of(&base->qp_base);
	struct weft_send *s = last(qp);
	if (!s)
		return;
	uint8_t *to = qp->inline_data + (size_t)(s->id & qp->send.queue.mask) * qp->inline_size;
	size_t length = 0;
	for (size_t i = 0; i < n; i++) {
		if (list[i].length > qp->inline_size - length) {
			qp->failed = ENOMEM;
			return;
		}
		memcpy(to + length, list[i].addr, list[i].length);
		length += list[i].length;
	}
	s->sges = length > 0;
	s->sge[0] = (struct weft_sge){.addr = (uintptr_t)to, .key = qp->inline_key, .length = length};
}

static void wr_set_inline_data(struct ibv_qp_ex *base, void *addr, size_t length)
{
	struct ibv_data_buf one = {.addr = addr, .length = length};
	wr_set_inline_data_list(base, 1, &one);
}

static void wr_start(struct ibv_qp_ex *base)
{
	struct qp *qp = qp_of(&base->qp_base);
	pthread_mutex_lock(&qp->send.lock);
	qp->building = qp->send.queue.tail;
	qp->failed = lost(base->qp_base.context) ? EIO : 0;
}

static int wr_complete(struct ibv_qp_ex *base)
{
	struct qp *qp = qp_of(&base->qp_base);
	int err = qp->failed;
	bool any = !err && qp->building != qp->send.queue.tail;
	if (any)
		store(&qp->send.queue.tail, qp->building);
	pthread_mutex_unlock(&qp->send.lock);
	if (any)
		weft_engine->send(qp->handle);
	return err;
}

static void wr_abort(struct ibv_qp_ex *base) { pthread_mutex_unlock(&qp_of(&base->qp_base)->send.lock); }

void fill_qp_ex(struct ibv_qp_ex *qp, uint64_t ops)
{
	qp->wr_start = wr_start;
	qp->wr_complete = wr_complete;
	qp->wr_abort = wr_abort;
	qp->wr_set_sge = wr_set_sge;
	qp->wr_set_sge_list = wr_set_sge_list;
	qp->wr_set_inline_data = wr_set_inline_data;
	qp->wr_set_inline_data_list = wr_set_inline_data_list;
#define HAS(flag, field) if (ops & IBV_QP_EX_WITH_##flag) qp->field = field
	HAS(RDMA_WRITE, wr_rdma_write);
	HAS(RDMA_WRITE_WITH_IMM, wr_rdma_write_imm);
	HAS(SEND, wr_send);
	HAS(SEND_WITH_IMM, wr_send_imm);
	HAS(RDMA_READ, wr_rdma_read);
	HAS(ATOMIC_CMP_AND_SWP, wr_atomic_cmp_swp);
	HAS(ATOMIC_FETCH_AND_ADD, wr_atomic_fetch_add);
	HAS(LOCAL_INV, wr_local_inv);
	HAS(BIND_MW, wr_bind_mw);
	HAS(SEND_WITH_INV, wr_send_inv);
#undef HAS
}
