/* Uses Weft's device and host.c's, side by side. Prints what is wrong; the exit status is
 * 1 then. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

static int wrong;

#define CHECK(what)                                                     \
	do {                                                                \
		errno = 0;                                                      \
		if (!(what)) {                                                  \
			printf("line %d: %s (errno %d)\n", __LINE__, #what, errno); \
			wrong = 1;                                                  \
		}                                                               \
	} while (0)

static char buffer[64];

static void use_host(struct ibv_device *d)
{
	struct ibv_context *c = ibv_open_device(d);
	struct ibv_pd *pd = ibv_alloc_pd(c);
	struct ibv_mr *mr = ibv_reg_mr(pd, buffer, sizeof(buffer), 0);
	CHECK(ibv_get_device_index(d) == 99);
	CHECK(mr && mr->lkey == 77);
	CHECK(!ibv_dereg_mr(mr));
	CHECK(ibv_dealloc_pd(pd) == EBUSY && errno == EBUSY);
	CHECK(ibv_close_device(c) == 1 && errno == ENOTEMPTY); /* the list that is not freed yet */
}

static void use_weft(struct ibv_device *d)
{
	struct ibv_context *c = ibv_open_device(d);
	struct ibv_pd *pd = ibv_alloc_pd(c);
	struct ibv_mr *mr = ibv_reg_mr(pd, buffer, sizeof(buffer), 0);
	CHECK(ibv_get_device_index(d) != 99);
	CHECK(mr && mr->context == c);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(c));
}

int main(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	CHECK(n == 2 && !strcmp(ibv_get_device_name(list[0]), "weft0") && !strcmp(ibv_get_device_name(list[1]), "host0") && !list[2]);
	if (wrong)
		return 1;
	use_weft(list[0]);
	use_host(list[1]);
	struct ibv_context *c = ibv_open_device(list[1]);
	ibv_free_device_list(list);
	CHECK(!ibv_close_device(c));
	return wrong;
}
