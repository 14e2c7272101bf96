/* Shared receive queues. A post goes straight to the engine, which counts what is
 * left for the limit's event. */
#include "weft.h"

#define POST_AT_ONCE 16 /* receives handed to the engine with one call */

static struct ibv_srq *create(struct ibv_pd *pd, void *srq_context, struct ibv_srq_attr *a)
{
	if (!a->max_wr || a->max_wr > LIMIT_CQES || a->max_sge > LIMIT_SGES) {
		errno = EINVAL;
		return NULL;
	}
	struct srq *srq = allocate(sizeof(*srq));
	struct weft_srq arguments = {
		.context = context_of(pd->context)->handle, .pd = pd->handle, .depth = a->max_wr, .sges = a->max_sge, .limit = 0, .owner = (uintptr_t)srq,
	};
	if (!srq)
		return NULL;
	srq->depth = a->max_wr;
	srq->sges = a->max_sge;
	srq->stride = sizeof(struct weft_receive) + (a->max_sge ? a->max_sge : 1) * sizeof(struct weft_sge);
	srq->entries = allocate((size_t)POST_AT_ONCE * srq->stride);
	int err = !srq->entries ? ENOMEM : foreign(pd->context) ? EIO : verb(WEFT_CREATE_SRQ, &arguments);
	if (err) {
		free(srq->entries);
		free(srq);
		errno = err;
		return NULL;
	}
	srq->handle = srq->base.handle = arguments.handle;
	srq->base.context = pd->context;
	srq->base.srq_context = srq_context;
	srq->base.pd = pd;
	pthread_mutex_init(&srq->lock, NULL);
	pthread_mutex_init(&srq->base.mutex, NULL);
	pthread_cond_init(&srq->base.cond, NULL);
	return &srq->base;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
	return create(pd, a->srq_context, &a->attr);
}

struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *a)
{
	(void)context;
	if (a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && a->srq_type != IBV_SRQT_BASIC) {
		refuse("ibv_create_srq_ex: shared receive queues of type %d are not supported", a->srq_type);
		return NULL;
	}
	if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
		errno = EINVAL;
		return NULL;
	}
	return create(a->pd, a->srq_context, &a->attr);
}

int get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	*number = srq_of(srq)->handle;
	return 0;
}

int ibv_modify_srq(struct ibv_srq *base, struct ibv_srq_attr *a, int mask)
{
	struct weft_srq arguments = {
		.handle = srq_of(base)->handle, .depth = a->max_wr, .limit = a->srq_limit, .change = mask,
	};
	if (foreign(base->context))
		return EIO;
	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	int err = verb(WEFT_MODIFY_SRQ, &arguments);
	if (!err && mask & IBV_SRQ_MAX_WR)
		srq_of(base)->depth = a->max_wr;
	return err;
}

int ibv_query_srq(struct ibv_srq *base, struct ibv_srq_attr *a)
{
	struct weft_srq arguments = {.handle = srq_of(base)->handle};
	int err = foreign(base->context) ? EIO : verb(WEFT_QUERY_SRQ, &arguments);
	if (err)
		return err;
	*a = (struct ibv_srq_attr){.max_wr = arguments.depth, .max_sge = srq_of(base)->sges, .srq_limit = arguments.limit};
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *base)
{
	struct srq *srq = srq_of(base);
	if (!foreign(base->context)) {
		struct weft_object arguments = {.handle = srq->handle};
		int err = verb(WEFT_DESTROY_SRQ, &arguments);
		if (err)
			return err;
		bell_unring(base->context->async_fd, arguments.events);
		await_acknowledged(&base->mutex, &base->cond, &base->events_completed, &srq->async_given);
	}
	free(srq->entries);
	free(srq);
	return 0;
}

static void put(struct srq *srq, uint32_t n, const struct ibv_recv_wr *wr)
{
	struct weft_receive *r = (struct weft_receive *)(srq->entries + (size_t)n * srq->stride);
	r->id = wr->wr_id;
	r->sges = wr->num_sge;
	for (int i = 0; i < wr->num_sge; i++)
		r->sge[i] = (struct weft_sge){.addr = wr->sg_list[i].addr, .key = wr->sg_list[i].lkey, .length = wr->sg_list[i].length};
}

int post_srq_recv(struct ibv_srq *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct srq *srq = srq_of(base);
	int err = lost(base->context) ? EIO : 0;
	pthread_mutex_lock(&srq->lock);
	while (!err && wr) {
		struct ibv_recv_wr *first = wr;
		uint32_t n = 0;
		for (; wr && n < POST_AT_ONCE; wr = wr->next) {
			if (wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->sges) {
				err = EINVAL;
				break;
			}
			put(srq, n++, wr);
		}
		uint32_t taken = n ? weft_engine->receive_shared(srq->handle, srq->entries, srq->stride, n) : 0;
		if (taken < n) {
			err = ENOMEM;
			for (wr = first; taken--; wr = wr->next)
				;
		}
	}
	pthread_mutex_unlock(&srq->lock);
	if (err)
		*bad = wr;
	return err;
}
