/* Queue pairs: creation, states, destruction. */
#include "weft.h"

static int new_work(struct work *w, uint32_t depth, uint32_t sges, size_t header)
{
	uint32_t size = power_of_two(depth ? depth : 1);
	w->depth = depth;
	w->sges = sges;
	w->queue.mask = size - 1;
	w->queue.stride = header + (sges ? sges : 1) * sizeof(struct weft_sge);
	w->queue.entries = allocate((size_t)size * w->queue.stride);
	w->ids = calloc(size, sizeof(*w->ids));
	w->ops = calloc(size, sizeof(*w->ops));
	pthread_mutex_init(&w->lock, NULL);
	return w->queue.entries && w->ids && w->ops ? 0 : ENOMEM;
}

static void free_work(struct work *w)
{
	free(w->queue.entries);
	free(w->ids);
	free(w->ops);
}

static void free_qp(struct qp *qp)
{
	free_work(&qp->send);
	free_work(&qp->receive);
	free(qp->inline_data);
	free(qp);
}

/* Memory for inline data, one slot a request, which requests name like any other. */
static int new_inline(struct qp *qp, struct ibv_pd *pd, uint32_t octets)
{
	size_t length = (size_t)octets * (qp->send.queue.mask + 1);
	if (!length)
		return 0;
	qp->inline_data = allocate(length);
	if (!qp->inline_data)
		return ENOMEM;
	struct weft_register arguments = {
		.pd = pd->handle, .addr = (uintptr_t)qp->inline_data, .length = length, .offset = (uintptr_t)qp->inline_data,
	};
	int err = verb(WEFT_REGISTER, &arguments);
	qp->inline_size = octets;
	qp->inline_mr = arguments.handle;
	qp->inline_key = arguments.key;
	return err;
}

static void drop_inline(struct qp *qp)
{
	struct weft_object arguments = {.handle = qp->inline_mr};
	if (qp->inline_mr)
		verb(WEFT_DEREGISTER, &arguments);
}

static int check(const struct ibv_qp_init_attr_ex *a)
{
	const struct ibv_qp_cap *c = &a->cap;
	if (a->qp_type != IBV_QPT_RC) {
		return refuse("ibv_create_qp: queue pairs of type %d are not supported; those of type RC (%d) are", a->qp_type, IBV_QPT_RC);
	}
	if (!a->send_cq || !a->recv_cq)
		return EINVAL;
	if (c->max_send_wr > LIMIT_WRS || c->max_recv_wr > LIMIT_WRS || c->max_send_sge > LIMIT_SGES ||
	    c->max_recv_sge > LIMIT_SGES || c->max_inline_data > LIMIT_INLINE) {
		explain("ibv_create_qp: %u and %u requests, %u and %u elements, %u inline octets; the limits are %d, %d and %d", c->max_send_wr,
			c->max_recv_wr, c->max_send_sge, c->max_recv_sge, c->max_inline_data, LIMIT_WRS, LIMIT_SGES, LIMIT_INLINE);
		return EINVAL;
	}
	return 0;
}

/* A queue has more room than was asked for, as hardware gives it: programs count on a
 * request being over when its answer has come, and that its completion may come later. */
#define LEAST_WRS 16
static uint32_t roomy(uint32_t requests)
{
	return !requests ? 0 : requests < LEAST_WRS ? LEAST_WRS : power_of_two(requests);
}

static int make(struct qp *qp, struct ibv_pd *pd, struct ibv_qp_init_attr_ex *a)
{
	struct ibv_qp_cap *c = &a->cap;
	if (a->srq)
		c->max_recv_wr = c->max_recv_sge = 0;
	c->max_send_wr = roomy(c->max_send_wr);
	c->max_recv_wr = roomy(c->max_recv_wr);
	int err = new_work(&qp->send, c->max_send_wr, c->max_send_sge, sizeof(struct weft_send));
	if (!err)
		err = new_work(&qp->receive, c->max_recv_wr, c->max_recv_sge, sizeof(struct weft_receive));
	if (!err)
		err = new_inline(qp, pd, c->max_inline_data);
	if (err)
		return err;
	struct weft_qp arguments = {
		.context = context_of(pd->context)->handle, .pd = pd->handle, .send_cq = cq_of(a->send_cq)->handle, .recv_cq = cq_of(a->recv_cq)->handle,
		.srq = a->srq ? srq_of(a->srq)->handle : 0, .sends = c->max_send_wr, .send_sges = c->max_send_sge,
		.receives = c->max_recv_wr, .receive_sges = c->max_recv_sge, .send = &qp->send.queue,
		.receive = &qp->receive.queue, .owner = (uintptr_t)qp,
	};
	err = verb(WEFT_CREATE_QP, &arguments);
	if (err) {
		drop_inline(qp);
		return err;
	}
	qp->handle = arguments.handle;
	qp->signal_all = a->sq_sig_all;
	qp->attributes = (struct ibv_qp_init_attr){
		.qp_context = a->qp_context, .send_cq = a->send_cq, .recv_cq = a->recv_cq, .srq = a->srq, .cap = *c,
		.qp_type = a->qp_type, .sq_sig_all = a->sq_sig_all,
	};
	struct ibv_qp *base = &qp->base;
	base->context = pd->context;
	base->qp_context = a->qp_context;
	base->pd = pd;
	base->send_cq = a->send_cq;
	base->recv_cq = a->recv_cq;
	base->srq = a->srq;
	base->handle = arguments.handle;
	base->qp_num = arguments.number;
	base->state = IBV_QPS_RESET; /* what programs read before they ask: an RNIC's is INIT already */
	qp->reset = rc_persona();
	base->qp_type = a->qp_type;
	pthread_mutex_init(&base->mutex, NULL);
	pthread_cond_init(&base->cond, NULL);
	return 0;
}

static struct ibv_qp *create(struct ibv_pd *pd, struct ibv_qp_init_attr_ex *a)
{
	int err = foreign(pd->context) ? EIO : check(a);
	struct qp *qp = err ? NULL : allocate(sizeof(*qp));
	if (!err && !qp)
		err = ENOMEM;
	if (!err)
		err = make(qp, pd, a);
	if (err) {
		if (qp)
			free_qp(qp);
		errno = err;
		return NULL;
	}
	return &qp->base;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = a->qp_context, .send_cq = a->send_cq, .recv_cq = a->recv_cq, .srq = a->srq, .cap = a->cap,
		.qp_type = a->qp_type, .sq_sig_all = a->sq_sig_all,
	};
	struct ibv_qp *qp = create(pd, &ex);
	if (qp)
		a->cap = ex.cap;
	return qp;
}

struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *a)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	const uint64_t ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
			     IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
			     IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
			     IBV_QP_EX_WITH_SEND_WITH_INV;
	bool with_ops = a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	(void)context;
	if (!(a->comp_mask & IBV_QP_INIT_ATTR_PD)) {
		errno = EINVAL;
		return NULL;
	}
	if (a->comp_mask & ~known || (a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && a->create_flags) ||
	    (with_ops && a->send_ops_flags & ~ops)) {
		refuse("ibv_create_qp_ex: attributes %#x, flags %#x, operations %#llx: not all are supported", a->comp_mask,
			a->create_flags, (unsigned long long)(with_ops ? a->send_ops_flags : 0));
		return NULL;
	}
	struct ibv_qp *qp = create(a->pd, a);
	if (qp && with_ops)
		fill_qp_ex((struct ibv_qp_ex *)qp, a->send_ops_flags);
	return qp;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct ibv_qp_ex *ex = (struct ibv_qp_ex *)qp;
	return ex->wr_start ? ex : NULL;
}

/* Of a queue pair that was reset nothing is left, in its queues and in those of its completions. */
static void start_again(struct qp *qp)
{
	forget_completions(cq_of(qp->base.send_cq), qp);
	forget_completions(cq_of(qp->base.recv_cq), qp);
	store(&qp->send.done, qp->send.queue.tail);
	store(&qp->receive.done, qp->receive.queue.tail);
}

int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *a, int mask)
{
	if (foreign(base->context))
		return EIO;
	struct weft_modify arguments = {.handle = qp_of(base)->handle, .mask = mask, .attributes = a};
	if (mask & IBV_QP_AV) {
		struct gid table[LIMIT_GIDS];
		int index = a->ah_attr.is_global ? a->ah_attr.grh.sgid_index : 0;
		if (index >= gid_table(table))
			return EINVAL;
		memcpy(arguments.source, table[index].gid.raw, sizeof(arguments.source));
	}
	int err = verb(WEFT_MODIFY_QP, &arguments);
	if (!err && mask & IBV_QP_STATE) {
		base->state = arguments.state;
		qp_of(base)->reset = a->qp_state == IBV_QPS_RESET;
		if (a->qp_state == IBV_QPS_RESET)
			start_again(qp_of(base));
	}
	return err;
}

int ibv_query_qp(struct ibv_qp *base, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *init)
{
	struct qp *qp = qp_of(base);
	if (foreign(base->context))
		return EIO;
	memset(a, 0, sizeof(*a));
	struct weft_modify arguments = {.handle = qp->handle, .mask = mask, .attributes = a};
	int err = verb(WEFT_QUERY_QP, &arguments);
	if (err)
		return err;
	a->cap = qp->attributes.cap;
	*init = qp->attributes;
	base->state = arguments.state;
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *base)
{
	struct qp *qp = qp_of(base);
	if (!foreign(base->context)) {
		struct weft_object arguments = {.handle = qp->handle};
		int err = verb(WEFT_DESTROY_QP, &arguments);
		if (err)
			return err;
		bell_unring(base->context->async_fd, arguments.events);
		drop_inline(qp);
		forget_completions(cq_of(base->send_cq), qp);
		forget_completions(cq_of(base->recv_cq), qp);
		await_acknowledged(&base->mutex, &base->cond, &base->events_completed, &qp->async_given);
	}
	free_qp(qp);
	return 0;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp, (void)op, (void)flags;
	return 0; /* octets are placed in any order */
}

/* There are no vendor's enhancements of connections. Who connects asks and goes on without: no reason is told. */
int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	memset(ece, 0, sizeof(*ece));
	return EOPNOTSUPP;
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	return ece->vendor_id ? refuse("ibv_set_ece: the enhancements of vendor %#x are not Weft's", ece->vendor_id) : EOPNOTSUPP;
}
