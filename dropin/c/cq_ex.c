/* Completions one field at a time: ibv_start_poll, ibv_next_poll, ibv_wc_read_*. */
#include <sched.h>
#include <time.h>

#include "weft.h"

static struct cq *cq_of_ex(struct ibv_cq_ex *cq) { return (struct cq *)cq; }

/* The opcode is kept where the operation of the completion was. */
static int advance(struct cq *cq)
{
	enum ibv_wc_opcode opcode;
	if (!next_completion(cq, &cq->current, &cq->ex.wr_id, &opcode))
		return ENOENT;
	cq->ex.status = cq->current.status;
	cq->current.op = opcode;
	return 0;
}

static int start_poll(struct ibv_cq_ex *base, struct ibv_poll_cq_attr *a)
{
	struct cq *cq = cq_of_ex(base);
	if (a->comp_mask)
		return EINVAL;
	if (foreign(base->context))
		return EIO;
	pthread_mutex_lock(&cq->lock);
	int err = advance(cq);
	if (err) {
		pthread_mutex_unlock(&cq->lock);
		weft_engine->progress(cq->handle);
		pthread_mutex_lock(&cq->lock);
		err = advance(cq);
	}
	if (err) {
		pthread_mutex_unlock(&cq->lock);
		sched_yield();
	}
	return err; /* without an error the lock is held until end_poll */
}

static int next_poll(struct ibv_cq_ex *base) { return advance(cq_of_ex(base)); }
static void end_poll(struct ibv_cq_ex *base) { pthread_mutex_unlock(&cq_of_ex(base)->lock); }

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *base) { return cq_of_ex(base)->current.op; }
static uint32_t read_vendor_err(struct ibv_cq_ex *base) { return cq_of_ex(base)->current.vendor_error; }
static uint32_t read_byte_len(struct ibv_cq_ex *base) { return cq_of_ex(base)->current.length; }
static __be32 read_imm_data(struct ibv_cq_ex *base) { return cq_of_ex(base)->current.immediate; }

static uint32_t read_qp_num(struct ibv_cq_ex *base)
{
	struct qp *qp = (struct qp *)(uintptr_t)cq_of_ex(base)->current.owner;
	return qp->base.qp_num;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *base)
{
	uint8_t flags = cq_of_ex(base)->current.flags;
	return (flags & WEFT_HAS_IMMEDIATE ? IBV_WC_WITH_IMM : 0) | (flags & WEFT_HAS_INVALIDATED ? IBV_WC_WITH_INV : 0);
}

static uint64_t read_completion_ts(struct ibv_cq_ex *base) { return cq_of_ex(base)->current.time; }

/* The same moment by the clock on the wall. */
static uint64_t read_wallclock(struct ibv_cq_ex *base)
{
	struct timespec mono, real;
	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &real);
	uint64_t ago = mono.tv_sec * 1000000000ULL + mono.tv_nsec - cq_of_ex(base)->current.time;
	return real.tv_sec * 1000000000ULL + real.tv_nsec - ago;
}

static uint32_t read_src_qp(struct ibv_cq_ex *base) { return (void)base, 0; }
static uint32_t read_slid(struct ibv_cq_ex *base) { return (void)base, 0; }
static uint8_t read_sl(struct ibv_cq_ex *base) { return (void)base, 0; }
static uint8_t read_dlid_path_bits(struct ibv_cq_ex *base) { return (void)base, 0; }

void fill_cq_ex(struct ibv_cq_ex *cq)
{
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_byte_len = read_byte_len;
	cq->read_imm_data = read_imm_data;
	cq->read_qp_num = read_qp_num;
	cq->read_src_qp = read_src_qp;
	cq->read_wc_flags = read_wc_flags;
	cq->read_slid = read_slid;
	cq->read_sl = read_sl;
	cq->read_dlid_path_bits = read_dlid_path_bits;
	cq->read_completion_ts = read_completion_ts;
	cq->read_completion_wallclock_ns = read_wallclock;
}
