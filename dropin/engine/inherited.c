/* The engine's sockets in a child of the program. A child inherits them by fork, and while
 * it has them open no peer would notice that the program has closed them, or has ended.
 * So the child closes them, before its fork returns.
 *
 * A socket is known by its descriptor and its inode. One that has been closed meanwhile
 * need not be taken out: whatever has its number then has another inode.
 */
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inherited.h"

#define LIMIT_FDS 65536

static uint64_t inodes[LIMIT_FDS]; /* of sockets, by descriptor */
static int highest = -1;

#define load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

void weft_not_for_children(int fd)
{
	struct stat st;
	if (fd < 0 || fd >= LIMIT_FDS || fstat(fd, &st))
		return;
	store(&inodes[fd], st.st_ino);
	int was = load(&highest);
	while (fd > was && !__atomic_compare_exchange_n(&highest, &was, fd, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

/* Only what a signal handler may call is called here. */
static void close_in_child(void)
{
	struct stat st;
	for (int fd = 0; fd <= highest; fd++) {
		if (inodes[fd] && !fstat(fd, &st) && S_ISSOCK(st.st_mode) && st.st_ino == inodes[fd])
			close(fd);
		inodes[fd] = 0;
	}
	highest = -1;
}

__attribute__((constructor)) static void begin(void) { pthread_atfork(NULL, NULL, close_in_child); }
