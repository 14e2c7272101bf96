/* Two threads leave: the second one when the library has begun to end its engine. */
#include <dirent.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_int before; /* threads that there are when the first one has left */

static int threads(void)
{
	int n = 0;
	DIR *tasks = opendir("/proc/self/task");
	while (readdir(tasks))
		n++;
	closedir(tasks);
	return n;
}

/* Destructors of the program come before those of the library, which starts a thread. */
__attribute__((destructor)) static void left(void) { before = threads(); }

static void *second(void *unused)
{
	while (!before || threads() <= before)
		;
	exit(0);
	return unused;
}

int main(void)
{
	pthread_t thread;
	struct ibv_device **list = ibv_get_device_list(NULL);
	if (!ibv_open_device(list[0]) || pthread_create(&thread, NULL, second, NULL))
		return 1;
	exit(0);
}
