/* The program's calls that close descriptors by number, while the engine is loaded. Some
 * programs close all that there may be: the engine's sockets, and the descriptors that its
 * runtime waits with, would be among them, and a runtime without them ends the process. So
 * these are left out. To the program it looks as if they were not open.
 */
#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "weft.h"

#define LIMIT_FDS 65536

enum { NOT_SEEN, BEFORE, RUNTIMES };
static uint8_t seen[LIMIT_FDS]; /* descriptors of epoll and events, by when they were there */

/* Notes those that are there now. */
static void note(uint8_t as)
{
	DIR *all = opendir("/proc/self/fd");
	for (struct dirent *e; all && (e = readdir(all));) {
		char to[32];
		int fd = atoi(e->d_name); /* 0 of "." and "..", which is none of the runtime's */
		ssize_t n = fd > 0 && fd < LIMIT_FDS ? readlinkat(dirfd(all), e->d_name, to, sizeof(to)) : -1;
		if (n > 0 && !strncmp(to, "anon_inode:[event", 17) && seen[fd] == NOT_SEEN)
			store(&seen[fd], as);
	}
	if (all)
		closedir(all);
}

void close_before_loading(void)
{
	memset(seen, NOT_SEEN, sizeof(seen)); /* after a fork they were the parent's engine's */
	note(BEFORE);
}

static bool is_engines(const struct weft_engine *e, int fd)
{
	return e && fd >= 0 && fd < LIMIT_FDS && (load(&seen[fd]) == RUNTIMES || e->has_socket(fd));
}

static int redirected_close(int fd)
{
	if (is_engines(load(&weft_engine), fd)) {
		errno = EBADF;
		return -1;
	}
	return close(fd);
}

/* What close_range is to a system that lacks it. */
static int close_each(unsigned first, unsigned last)
{
	long most = sysconf(_SC_OPEN_MAX);
	for (unsigned fd = first; fd <= last && fd < (unsigned long)most; fd++)
		close(fd);
	return 0;
}

/* The system call has no function in older C libraries. */
static int close_run(unsigned first, unsigned last, int flags)
{
	if (first > last)
		return 0;
#ifdef SYS_close_range
	if (!syscall(SYS_close_range, first, last, flags))
		return 0;
	if (errno != ENOSYS || flags)
		return -1;
#endif
	return close_each(first, last);
}

static int redirected_close_range(unsigned first, unsigned last, int flags)
{
	const struct weft_engine *e = load(&weft_engine);
	if (first > last) {
		errno = EINVAL;
		return -1;
	}
	for (unsigned fd = first; e && fd <= last && fd < LIMIT_FDS; fd++) {
		if (!is_engines(e, fd))
			continue;
		if (fd > first && close_run(first, fd - 1, flags))
			return -1;
		first = fd + 1;
	}
	return close_run(first, last, flags);
}

static void redirected_closefrom(int first) { redirected_close_range(first < 0 ? 0 : first, ~0u, 0); }

static const struct redirection functions[] = {
	{"close", redirected_close}, {"close_range", redirected_close_range}, {"closefrom", redirected_closefrom},
};

/* librdmacm's close is redirected already. What the C library closes is its own. */
static bool is_program(const char *library)
{
	return strncmp(library, "libibverbs.so", 13) && strncmp(library, "libweft-", 8) && strncmp(library, "librdmacm.so", 12) &&
		strncmp(library, "libc.so", 7) && strncmp(library, "ld-linux", 8);
}

void redirect_close_again(void) { redirect(is_program, functions, sizeof(functions) / sizeof(*functions)); }

void redirect_close(void)
{
	note(RUNTIMES);
	redirect_close_again();
}
