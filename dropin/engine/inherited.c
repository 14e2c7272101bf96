/* The engine's sockets, and the descriptors that it waits for them with, in a child of the
 * program. A child inherits them by fork, and while it has a socket open no peer would notice
 * that the program has closed it, or has ended. So the child closes them, before its fork
 * returns.
 *
 * Each is known by its number and its inode. A socket that has been closed meanwhile need
 * not be taken out: whatever has its number then has another inode. The descriptors of epoll
 * and of timers share an inode; the engine never closes them.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
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

/* A descriptor of a socket, or of what has no type: epoll and timers. */
static bool closes(mode_t mode) { return S_ISSOCK(mode) || !(mode & S_IFMT); }

int weft_has_socket(int fd)
{
	struct stat st;
	return fd >= 0 && fd < LIMIT_FDS && load(&inodes[fd]) && !fstat(fd, &st) && closes(st.st_mode) && st.st_ino == load(&inodes[fd]);
}

uint32_t weft_failed;

void weft_sever(int fd)
{
	const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
	struct stat st;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the number may be another's in a moment */
	int to = own >= 0 ? own : fd;
	if (!fstat(to, &st) && S_ISSOCK(st.st_mode) && st.st_ino == load(&inodes[fd]) && connect(to, &nobody, sizeof(nobody)))
		shutdown(to, SHUT_RDWR);
	if (own >= 0)
		close(own);
}

void weft_sever_all(void)
{
	for (int fd = 0; fd <= load(&highest); fd++)
		if (load(&inodes[fd]))
			weft_sever(fd);
}

/* Only what a signal handler may call is called here. */
static void close_in_child(void)
{
	for (int fd = 0; fd <= highest; fd++) {
		if (weft_has_socket(fd))
			close(fd);
		inodes[fd] = 0;
	}
	highest = -1;
}

__attribute__((constructor)) static void begin(void) { pthread_atfork(NULL, NULL, close_in_child); }
