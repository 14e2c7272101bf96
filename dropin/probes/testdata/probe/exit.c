/* The end of a program in two threads at once, which C leaves undefined and which happens:
 * main returns while another thread calls exit. */
#include <fcntl.h>

#include "probe.h"

static pthread_barrier_t together;

static void *exits(void *unused)
{
	pthread_barrier_wait(&together);
	exit(0);
	return unused;
}

static void exits_twice(void)
{
	pthread_t thread;
	CHECK(!setenv("WEFT_VERBOSE", "1", 1));
	struct setup s;
	connect_all(&s);
	CHECK(!pthread_barrier_init(&together, NULL, 2) && !pthread_create(&thread, NULL, exits, NULL));
	exits(NULL);
}

/* What a function run in a child says on standard error. */
static void says(void (*f)(void), char *text, size_t room)
{
	int ends[2], error = fcntl(2, F_DUPFD_CLOEXEC, 3);
	CHECK(error > 0 && !pipe(ends) && dup2(ends[1], 2) == 2);
	int status = in_child(f);
	CHECK(dup2(error, 2) == 2 && !close(error) && !close(ends[1]));
	ssize_t n = read(ends[0], text, room - 1);
	CHECK(n >= 0);
	text[n] = 0;
	CHECK(!close(ends[0]) && !status);
}

/* The last words are complete: the summary, and with it the end of a recording. */
PROBE(exit_in_two_threads)
{
	char text[4096];
	for (int i = 0; i < 20; i++) {
		says(exits_twice, text, sizeof(text));
		CHECK(strstr(text, "2 queue pairs") && strchr(text, '\n'));
	}
}
