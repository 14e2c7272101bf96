/* Protection domains, memory regions and memory windows. */
#include <sys/mman.h>
#include <unistd.h>

#include "weft.h"

void *allocate(size_t octets)
{
	void *p = NULL;
	octets = (octets + 63) & ~(size_t)63;
	if (posix_memalign(&p, 64, octets ? octets : 64))
		return NULL;
	return memset(p, 0, octets ? octets : 64);
}

uint32_t power_of_two(uint32_t n)
{
	uint32_t p = 1;
	while (p < n)
		p *= 2;
	return p;
}

/* A domain, or a parent domain: another name of one. */
struct pd {
	struct ibv_pd base;
	struct pd *parent_of; /* of a parent domain, what it is a name of */
	uint32_t names;       /* parent domains of it */
	bool borrowed;        /* the engine's is another's */
};

static struct ibv_pd *new_pd(struct ibv_context *context, uint32_t handle, bool borrowed)
{
	struct pd *pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->base.context = context;
	pd->base.handle = handle;
	pd->borrowed = borrowed;
	return &pd->base;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct weft_object arguments = {.context = context_of(context)->handle};
	int err = foreign(context) ? EIO : verb(WEFT_ALLOC_PD, &arguments);
	struct ibv_pd *pd = err ? NULL : new_pd(context, arguments.handle, false);
	if (err)
		errno = err;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *base)
{
	struct pd *pd = (struct pd *)base;
	if (load(&pd->names))
		return EBUSY;
	if (!pd->borrowed && !foreign(base->context)) {
		struct weft_object arguments = {.handle = base->handle};
		int err = verb(WEFT_FREE_PD, &arguments);
		if (err)
			return err;
	}
	if (pd->parent_of)
		__atomic_sub_fetch(&pd->parent_of->names, 1, __ATOMIC_SEQ_CST);
	free(pd);
	return 0;
}

struct ibv_pd *alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *a)
{
	struct pd *of = (struct pd *)a->pd;
	if (!of || of->parent_of || a->comp_mask & ~(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)) {
		errno = EINVAL;
		return NULL;
	}
	struct pd *pd = (struct pd *)new_pd(context, a->pd->handle, true);
	if (!pd)
		return NULL;
	pd->parent_of = of;
	__atomic_add_fetch(&of->names, 1, __ATOMIC_SEQ_CST);
	return &pd->base;
}

struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *a)
{
	if (a->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	struct ibv_td *td = calloc(1, sizeof(*td));
	if (td)
		td->context = context;
	return td;
}

int dealloc_td(struct ibv_td *td)
{
	free(td);
	return 0;
}

static struct ibv_mr *new_mr(enum weft_verb how, struct ibv_pd *pd, void *addr, size_t length, uint64_t offset, uint32_t access, uint32_t handle)
{
	struct weft_register arguments = {
		.pd = pd->handle, .handle = handle, .addr = (uintptr_t)addr, .length = length, .offset = offset, .access = access,
	};
	struct mr *mr = calloc(1, sizeof(*mr));
	int err = !mr ? ENOMEM : foreign(pd->context) ? EIO : verb(how, &arguments);
	if (err) {
		free(mr);
		errno = err;
		return NULL;
	}
	mr->access = access;
	mr->base = (struct ibv_mr){
		.context = pd->context, .pd = pd, .addr = addr, .length = length, .handle = arguments.handle,
		.lkey = arguments.key, .rkey = arguments.key,
	};
	return &mr->base;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t offset, uint32_t access)
{
	return new_mr(WEFT_REGISTER, pd, addr, length, offset, access, 0);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return reg_mr(pd, addr, length, (uintptr_t)addr, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t offset, int access)
{
	return reg_mr(pd, addr, length, offset, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t offset, unsigned int access)
{
	return reg_mr(pd, addr, length, offset, access & ~IBV_ACCESS_OPTIONAL_RANGE);
}

struct ibv_mr *alloc_null_mr(struct ibv_pd *pd)
{
	return new_mr(WEFT_REGISTER_NULL, pd, NULL, SIZE_MAX, 0, IBV_ACCESS_LOCAL_WRITE, 0);
}

/* Has the pages of an element there. What can't be is no error: it is advice. */
static void fetch(const struct ibv_sge *e, bool write)
{
	uintptr_t page = sysconf(_SC_PAGESIZE), from = e->addr & ~(page - 1), to = (e->addr + e->length + page - 1) & ~(page - 1);
	if (madvise((void *)from, to - from, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		madvise((void *)from, to - from, MADV_WILLNEED);
}

int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *list, uint32_t n)
{
	if (!rc_persona())
		return refuse("ibv_advise_mr: an RNIC has no on-demand paging, so nothing is fetched ahead");
	if (flags & ~IBV_ADVISE_MR_FLAG_FLUSH)
		return EINVAL;
	if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return refuse("ibv_advise_mr: advice %d is not known", advice);
	struct weft_sge *own = calloc(n ? n : 1, sizeof(*own));
	if (!own)
		return ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		own[i] = (struct weft_sge){.addr = list[i].addr, .key = list[i].lkey, .length = list[i].length};
	struct weft_advise arguments = {.pd = pd->handle, .n = n, .list = own};
	int err = foreign(pd->context) ? EIO : verb(WEFT_ADVISE, &arguments);
	free(own);
	for (uint32_t i = 0; !err && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT && i < n; i++)
		fetch(&list[i], advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE);
	return err;
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	(void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
	refuse("ibv_reg_dmabuf_mr: a software device has no way to device memory");
	return NULL;
}

int ibv_rereg_mr(struct ibv_mr *base, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct mr *mr = (struct mr *)base;
	struct weft_register arguments = {
		.handle = base->handle, .pd = flags & IBV_REREG_MR_CHANGE_PD ? pd->handle : 0, .change = flags,
		.addr = (uintptr_t)addr, .length = length, .offset = (uintptr_t)addr, .access = access,
	};
	if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED || (flags & IBV_REREG_MR_CHANGE_PD && !pd)) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	int err = foreign(base->context) ? EIO : verb(WEFT_REREGISTER, &arguments);
	if (err) {
		errno = err;
		return err == EINVAL ? IBV_REREG_MR_ERR_INPUT : IBV_REREG_MR_ERR_CMD;
	}
	base->lkey = base->rkey = arguments.key;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		base->pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		mr->access = access;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		base->addr = addr;
		base->length = length;
	}
	return 0;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	if (!foreign(mr->context)) {
		struct weft_object arguments = {.handle = mr->handle};
		int err = verb(WEFT_DEREGISTER, &arguments);
		if (err)
			return err;
	}
	free(mr);
	return 0;
}

struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct weft_window arguments = {.pd = pd->handle, .type = type};
	struct ibv_mw *mw = calloc(1, sizeof(*mw));
	int err = !mw ? ENOMEM : type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2 ? EINVAL : foreign(pd->context) ? EIO : verb(WEFT_ALLOC_WINDOW, &arguments);
	if (err) {
		free(mw);
		errno = err;
		return NULL;
	}
	*mw = (struct ibv_mw){.context = pd->context, .pd = pd, .rkey = arguments.key, .handle = arguments.handle, .type = type};
	return mw;
}

int dealloc_mw(struct ibv_mw *mw)
{
	if (!foreign(mw->context)) {
		struct weft_object arguments = {.handle = mw->handle};
		int err = verb(WEFT_FREE_WINDOW, &arguments);
		if (err)
			return err;
	}
	free(mw);
	return 0;
}

/* Objects are shared within the process. What is imported is another name of the same. */
struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct weft_object arguments = {.handle = handle};
	int err = foreign(context) ? EIO : verb(WEFT_FIND_PD, &arguments);
	if (err) {
		errno = err;
		return NULL;
	}
	return new_pd(context, handle, true);
}

void ibv_unimport_pd(struct ibv_pd *pd) { free(pd); }

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	return new_mr(WEFT_FIND_REGION, pd, NULL, 0, 0, 0, handle);
}

void ibv_unimport_mr(struct ibv_mr *mr) { free(mr); }

struct ibv_dm *ibv_import_dm(struct ibv_context *c, uint32_t handle)
{
	(void)c, (void)handle;
	refuse("ibv_import_dm: objects are not shared between processes");
	return NULL;
}

void ibv_unimport_dm(struct ibv_dm *dm) { (void)dm; }
