/* Posting: requests are written into queues that the engine sees. A post to the
 * send queue calls the engine once, which sends in this thread as much as the
 * socket takes; a post to the receive queue calls nobody, as a rule. */
#include "weft.h"

/* What an opcode of the verbs is here, and in a completion. 0 is: not supported. */
static const struct {
	uint8_t op, completion;
} opcodes[] = {
	[IBV_WR_RDMA_WRITE] = {WEFT_WRITE, IBV_WC_RDMA_WRITE},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {WEFT_WRITE_IMMEDIATE, IBV_WC_RDMA_WRITE},
	[IBV_WR_SEND] = {WEFT_SEND, IBV_WC_SEND},
	[IBV_WR_SEND_WITH_IMM] = {WEFT_SEND_IMMEDIATE, IBV_WC_SEND},
	[IBV_WR_RDMA_READ] = {WEFT_READ, IBV_WC_RDMA_READ},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {WEFT_COMPARE_SWAP, IBV_WC_COMP_SWAP},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {WEFT_FETCH_ADD, IBV_WC_FETCH_ADD},
	[IBV_WR_LOCAL_INV] = {WEFT_INVALIDATE, IBV_WC_LOCAL_INV},
	[IBV_WR_BIND_MW] = {WEFT_BIND, IBV_WC_BIND_MW},
	[IBV_WR_SEND_WITH_INV] = {WEFT_SEND_INVALIDATE, IBV_WC_SEND},
};

struct weft_send *send_slot(struct qp *qp, uint64_t n)
{
	struct work *w = &qp->send;
	if (n - load(&w->done) >= w->depth)
		return NULL;
	return (struct weft_send *)(w->queue.entries + (size_t)(n & w->queue.mask) * w->queue.stride);
}

static int put_sges(struct weft_sge *to, const struct ibv_sge *from, int n)
{
	for (int i = 0; i < n; i++)
		to[i] = (struct weft_sge){.addr = from[i].addr, .key = from[i].lkey, .length = from[i].length};
	return n;
}

/* Copies the memory of a request into the slot's own. Returns false if it is too long. */
static bool put_inline(struct qp *qp, uint64_t n, struct weft_send *s, const struct ibv_sge *from, int count)
{
	uint8_t *to = qp->inline_data + (size_t)(n & qp->send.queue.mask) * qp->inline_size;
	size_t length = 0;
	for (int i = 0; i < count; i++) {
		if (from[i].length > qp->inline_size - length)
			return false;
		memcpy(to + length, (void *)(uintptr_t)from[i].addr, from[i].length);
		length += from[i].length;
	}
	s->sges = length > 0;
	s->sge[0] = (struct weft_sge){.addr = (uintptr_t)to, .key = qp->inline_key, .length = length};
	return true;
}

static void put_bind(struct weft_send *s, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *b = &wr->bind_mw.bind_info;
	s->remote_key = wr->bind_mw.mw->rkey;
	s->immediate = wr->bind_mw.rkey;
	s->region = b->mr ? b->mr->rkey : 0;
	s->remote = b->addr;
	s->operand = b->length;
	s->compare = b->mw_access_flags;
}

/* Does the operation need what only RFC 7306 has? */
static bool extension(uint8_t op)
{
	return op == WEFT_SEND_IMMEDIATE || op == WEFT_WRITE_IMMEDIATE || op == WEFT_COMPARE_SWAP || op == WEFT_FETCH_ADD;
}

/* Writes request n. */
static int put_send(struct qp *qp, uint64_t n, const struct ibv_send_wr *wr)
{
	unsigned opcode = wr->opcode;
	if (opcode >= sizeof(opcodes) / sizeof(opcodes[0]) || !opcodes[opcode].op)
		return EINVAL;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->send.sges)
		return EINVAL;
	if (extension(opcodes[opcode].op) && !load(&qp->send.queue.extensions)) {
		struct weft_object arguments = {.handle = qp->handle};
		int err = verb(WEFT_AWAIT_EXTENSIONS, &arguments);
		if (err)
			return err;
	}
	struct weft_send *s = send_slot(qp, n);
	if (!s)
		return ENOMEM;
	s->id = n;
	s->op = opcodes[opcode].op;
	s->flags = (qp->signal_all || wr->send_flags & IBV_SEND_SIGNALED ? WEFT_SIGNALED : 0) |
		   (wr->send_flags & IBV_SEND_SOLICITED ? WEFT_SOLICITED : 0) |
		   (wr->send_flags & IBV_SEND_FENCE ? WEFT_FENCE : 0);
	s->immediate = wr->imm_data;
	s->remote = wr->wr.rdma.remote_addr;
	s->remote_key = wr->wr.rdma.rkey;
	s->sges = wr->num_sge;
	switch (s->op) {
	case WEFT_COMPARE_SWAP:
	case WEFT_FETCH_ADD:
		s->remote_key = wr->wr.atomic.rkey;
		s->compare = wr->wr.atomic.compare_add;
		s->operand = s->op == WEFT_FETCH_ADD ? wr->wr.atomic.compare_add : wr->wr.atomic.swap;
		if (wr->num_sge != 1 || wr->sg_list->length != 8)
			return EINVAL;
		break;
	case WEFT_READ:
		if (wr->num_sge > 1 || wr->send_flags & IBV_SEND_INLINE)
			return EINVAL;
		break;
	case WEFT_BIND:
		put_bind(s, wr);
		s->sges = 0;
		break;
	case WEFT_INVALIDATE:
		s->sges = 0;
		break;
	}
	if (!(wr->send_flags & IBV_SEND_INLINE))
		put_sges(s->sge, wr->sg_list, s->sges);
	else if (!put_inline(qp, n, s, wr->sg_list, s->sges))
		return EINVAL;
	uint32_t slot = n & qp->send.queue.mask;
	qp->send.ids[slot] = wr->wr_id;
	qp->send.ops[slot] = opcodes[opcode].completion;
	return 0;
}

int post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct qp *qp = qp_of(base);
	int err = lost(base->context) ? EIO : qp->reset ? EINVAL : 0;
	if (err) {
		*bad = wr;
		return err;
	}
	pthread_mutex_lock(&qp->send.lock);
	uint64_t first = qp->send.queue.tail, n = first;
	for (; wr && !(err = put_send(qp, n, wr)); wr = wr->next)
		n++;
	store(&qp->send.queue.tail, n);
	pthread_mutex_unlock(&qp->send.lock);
	if (err)
		*bad = wr;
	if (n != first)
		weft_engine->send(qp->handle);
	return err;
}

/* Tells the engine of receives, if it asked for that. */
static void ring(struct qp *qp)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (load(&qp->receive.queue.bell))
		weft_engine->receive(qp->handle);
}

int post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct qp *qp = qp_of(base);
	struct work *w = &qp->receive;
	int err = lost(base->context) ? EIO : base->srq || qp->reset ? EINVAL : 0;
	if (err) {
		*bad = wr;
		return err;
	}
	pthread_mutex_lock(&w->lock);
	uint64_t n = w->queue.tail;
	for (; wr; wr = wr->next, n++) {
		if (wr->num_sge < 0 || (uint32_t)wr->num_sge > w->sges)
			err = EINVAL;
		else if (n - load(&w->done) >= w->depth)
			err = ENOMEM;
		if (err) {
			*bad = wr;
			break;
		}
		uint32_t slot = n & w->queue.mask;
		struct weft_receive *r = (struct weft_receive *)(w->queue.entries + (size_t)slot * w->queue.stride);
		r->id = n;
		r->sges = put_sges(r->sge, wr->sg_list, wr->num_sge);
		w->ids[slot] = wr->wr_id;
	}
	store(&w->queue.tail, n);
	pthread_mutex_unlock(&w->lock);
	ring(qp);
	return err;
}

/* A window of type 1 gets another key with each bind; the program finds it in the window. */
int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *b)
{
	uint32_t key = ibv_inc_rkey(mw->rkey);
	struct ibv_send_wr *bad, wr = {
		.wr_id = b->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = b->send_flags,
		.bind_mw = {.mw = mw, .rkey = key, .bind_info = b->bind_info},
	};
	int err = post_send(qp, &wr, &bad);
	if (!err)
		mw->rkey = key;
	return err;
}
