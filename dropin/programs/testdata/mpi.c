// An MPI program that compares all that it moves: messages round a ring, from 1 octet to
// 1 MiB, a sum over all ranks, and one-sided puts and gets.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 1 << 20, WORDS = 1 << 14 };

static int rank, size;

static void fail(const char *what, int n)
{
	printf("rank %d: %s: %d differs\n", rank, what, n);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char at(int i, int seed) { return (unsigned char)((unsigned)i * 131u + (unsigned)seed * 17u + ((unsigned)i >> 8)); }

static void ring(void)
{
	unsigned char *out = malloc(LARGEST), *in = malloc(LARGEST);
	int next = (rank + 1) % size, last = (rank + size - 1) % size;

	for (int n = 1; n <= LARGEST; n *= 4) {
		for (int i = 0; i < n; i++)
			out[i] = at(i, rank);
		memset(in, 0, (size_t)n);
		MPI_Sendrecv(out, n, MPI_BYTE, next, n % 1000, in, n, MPI_BYTE, last, n % 1000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < n; i++)
			if (in[i] != at(i, last))
				fail("ring", i);
	}
	free(out);
	free(in);
}

static void allreduce(void)
{
	int *out = malloc(WORDS * sizeof *out), *in = malloc(WORDS * sizeof *in);

	for (int i = 0; i < WORDS; i++)
		out[i] = i * (rank + 1);
	MPI_Allreduce(out, in, WORDS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < WORDS; i++)
		if (in[i] != i * size * (size + 1) / 2)
			fail("allreduce", i);
	free(out);
	free(in);
}

static void onesided(void)
{
	MPI_Win win;
	int *mine, *buf = malloc(WORDS * sizeof *buf), next = (rank + 1) % size, last = (rank + size - 1) % size;

	MPI_Win_allocate(WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
	memset(mine, 0, WORDS * sizeof *mine);
	for (int i = 0; i < WORDS; i++)
		buf[i] = i * 3 + rank;
	MPI_Win_fence(0, win);
	MPI_Put(buf, WORDS, MPI_INT, next, 0, WORDS, MPI_INT, win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < WORDS; i++)
		if (mine[i] != i * 3 + last)
			fail("put", i);
	memset(buf, 0, WORDS * sizeof *buf);
	MPI_Win_fence(0, win);
	MPI_Get(buf, WORDS, MPI_INT, next, 0, WORDS, MPI_INT, win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < WORDS; i++)
		if (buf[i] != i * 3 + rank)
			fail("get", i);
	MPI_Win_free(&win);
	free(buf);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	ring();
	allreduce();
	onesided();
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("ring, allreduce, put and get are equal\n");
	MPI_Finalize();
	return 0;
}
