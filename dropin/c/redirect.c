/* librdmacm speaks to the kernel by open, fstat, write and close on
 * /dev/infiniband/rdma_cm. Its calls of these four are redirected here, in its
 * own table of functions (the global offset table), which leaves every other
 * library and the program alone.
 *
 * The descriptor that it gets is a pipe's: readable when there is an event, as
 * that of the kernel. Commands go to the engine.
 */
#include <fcntl.h>
#include <rdma/rdma_user_cm.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "weft.h"

#define CM_DEVICE "/dev/infiniband/rdma_cm"
#define LIMIT_FDS 65536

enum { NOT_OURS, OURS, PARENTS };
static uint8_t descriptors[LIMIT_FDS];
static int rings[LIMIT_FDS];        /* the engine's ends */
static uint16_t waiting[LIMIT_FDS]; /* threads that wait for an event */

static uint8_t whose(int fd) { return fd >= 0 && fd < LIMIT_FDS ? load(&descriptors[fd]) : NOT_OURS; }

static int open_cm(void)
{
	if (!engine_load())
		return -1;
	struct bell bell;
	int err = bell_open(&bell);
	if (!err && bell.fd >= LIMIT_FDS) {
		close(bell.fd);
		close(bell.ring);
		err = EMFILE;
	}
	if (err) {
		errno = err;
		return -1;
	}
	rings[bell.fd] = bell.ring;
	weft_engine->cm_open(bell.fd, bell.ring);
	store(&descriptors[bell.fd], OURS);
	return bell.fd;
}

static int redirected_open(const char *path, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	int mode = flags & O_CREAT ? va_arg(arguments, int) : 0;
	va_end(arguments);
	return strcmp(path, CM_DEVICE) ? open(path, flags, mode) : open_cm();
}

/* The number of the kernel's device, if this machine has one: librdmacm asks the kernel
 * for it, too, and compares. */
static dev_t kernels_number(void)
{
	unsigned major_of = 0, minor_of = 0;
	FILE *f = fopen("/sys/class/misc/rdma_cm/dev", "re");
	if (!f)
		return 0;
	int n = fscanf(f, "%u:%u", &major_of, &minor_of);
	fclose(f);
	return n == 2 ? makedev(major_of, minor_of) : 0;
}

static int redirected_fstat(int fd, struct stat *st)
{
	int err = fstat(fd, st);
	if (!err && whose(fd) == OURS) {
		st->st_mode = (st->st_mode & ~S_IFMT) | S_IFCHR;
		st->st_rdev = kernels_number();
	}
	return err;
}

static int redirected_close(int fd)
{
	if (whose(fd) == OURS) {
		weft_engine->cm_close(fd);
		/* Who waits while another thread closes the channel waits on, as in the kernel. */
		if (!load(&waiting[fd]))
			close(rings[fd]);
	}
	if (whose(fd) != NOT_OURS)
		store(&descriptors[fd], NOT_OURS);
	return close(fd);
}

static void waits_no_more(void *threads) { __atomic_sub_fetch((uint16_t *)threads, 1, __ATOMIC_SEQ_CST); }

static bool await_event(int fd)
{
	bool came;
	int err;
	__atomic_add_fetch(&waiting[fd], 1, __ATOMIC_SEQ_CST);
	pthread_cleanup_push(waits_no_more, &waiting[fd]); /* the program may cancel the thread */
	came = bell_wait(fd);
	err = errno;
	pthread_cleanup_pop(true);
	errno = err;
	return came;
}

static ssize_t redirected_write(int fd, const void *command, size_t octets)
{
	struct rdma_ucm_cmd_hdr header;
	switch (whose(fd)) {
	case NOT_OURS:
		return write(fd, command, octets);
	case PARENTS:
		errno = EIO;
		return -1;
	}
	if (octets < sizeof(header)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(&header, command, sizeof(header));
	long n;
	do {
		if (header.cmd == RDMA_USER_CM_CMD_GET_EVENT && !await_event(fd))
			return -1;
		n = weft_engine->cm(fd, command, octets);
	} while (n == -EAGAIN && header.cmd == RDMA_USER_CM_CMD_GET_EVENT); /* the event has gone elsewhere */
	if (n < 0) {
		errno = -n;
		return -1;
	}
	return n;
}

void redirect_forget(void)
{
	for (int fd = 0; fd < LIMIT_FDS; fd++)
		if (descriptors[fd] == OURS)
			descriptors[fd] = PARENTS;
}

/* The functions by the names that librdmacm may know them by. */
static const struct redirection functions[] = {
	{"open", redirected_open}, {"open64", redirected_open}, {"fstat", redirected_fstat}, {"fstat64", redirected_fstat},
	{"write", redirected_write}, {"close", redirected_close},
};

static bool is_rdmacm(const char *library) { return !strncmp(library, "librdmacm.so", 12); }

void redirect_rdmacm(void) { redirect(is_rdmacm, functions, sizeof(functions) / sizeof(*functions)); }
