/* What the C peers share: options, the clock of a sample, percentiles, and
 * what they print. One source file includes it; all is static.
 *
 * A program is started as
 *
 *     program role=target size=64 ...            prints: ready PORT
 *     program role=initiator port=PORT size=64 ...
 *
 * and at the end each prints one line, "sample ..." or "served ...", of
 * decimal numbers. Where it runs is inherited from who starts it. */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct options {
	const char *role, *shape, *op, *congestion;
	const char *address; /* that the target listens at */
	long size;        /* octets of a message */
	long window;      /* octets that a stream walks through: whole messages */
	long batch;       /* octets gathered into one write; 0: a write a message */
	long polling;     /* a ping-pong's ends poll, and do not sleep */
	long shared;      /* both ends share processors: who polls yields */
	long connections;
	long warmup, sample; /* ns */
	long seed;
	long port;
};

static struct options opt;

static void fail(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void parse(int argc, char **argv)
{
	struct { const char *name; const char **text; long *number; } all[] = {
		{"role", &opt.role, 0}, {"shape", &opt.shape, 0}, {"op", &opt.op, 0}, {"congestion", &opt.congestion, 0},
		{"address", &opt.address, 0},
		{"size", 0, &opt.size}, {"window", 0, &opt.window}, {"batch", 0, &opt.batch}, {"polling", 0, &opt.polling},
		{"shared", 0, &opt.shared}, {"connections", 0, &opt.connections}, {"warmup", 0, &opt.warmup},
		{"sample", 0, &opt.sample}, {"seed", 0, &opt.seed}, {"port", 0, &opt.port},
	};
	for (int i = 1; i < argc; i++) {
		size_t j, n = sizeof all / sizeof all[0];
		for (j = 0; j < n; j++) {
			size_t len = strlen(all[j].name);
			if (strncmp(argv[i], all[j].name, len) || argv[i][len] != '=')
				continue;
			if (all[j].text)
				*all[j].text = argv[i] + len + 1;
			else
				*all[j].number = atol(argv[i] + len + 1);
			break;
		}
		if (j == n)
			fail("unexpected argument %s", argv[i]);
	}
}

static int is(const char *option, const char *value) { return option && !strcmp(option, value); }

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* Processor time of this process, ns. */
static int64_t cpu(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000ll + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000ll;
}

/* A sample: a warm-up that does not count, then the counted part. */
struct stopwatch {
	int64_t begin, end, elapsed;
	uint64_t messages, skipped;
	int counting;
	int64_t *trips; /* round trips, ns; the first MAX_TRIPS of them */
	size_t count;
};

#define MAX_TRIPS (1 << 19)

static void start(struct stopwatch *s, int trips)
{
	memset(s, 0, sizeof *s);
	if (trips && !(s->trips = calloc(MAX_TRIPS, sizeof *s->trips)))
		fail("out of memory");
	s->begin = now() + opt.warmup;
	s->end = s->begin + opt.sample;
}

/* Looks at the clock t: has the sample lasted enough? */
static int over(struct stopwatch *s, int64_t t)
{
	if (!s->counting && t >= s->begin) {
		s->counting = 1;
		s->skipped = s->messages;
		s->begin = t;
		s->end = t + opt.sample;
	}
	return s->counting && t >= s->end;
}

static void trip(struct stopwatch *s, int64_t took)
{
	s->messages++;
	if (s->counting && s->count < MAX_TRIPS)
		s->trips[s->count++] = took;
}

static void stop(struct stopwatch *s) { s->elapsed = now() - s->begin; }

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* The smallest trip that at least the share p do not exceed, in ns. */
static int64_t percentile(struct stopwatch *s, double p)
{
	size_t rank = (size_t)(p * s->count);
	if (!s->count)
		return 0;
	if (rank < p * s->count)
		rank++;
	return s->trips[(rank ? rank : 1) - 1];
}

/* sample MESSAGES TOTAL ELAPSED CPU P50 P90 P99 P999 */
static void print_sample(struct stopwatch *s, int64_t cpu_begin)
{
	if (s->count)
		qsort(s->trips, s->count, sizeof *s->trips, ascending);
	printf("sample %llu %llu %lld %lld %lld %lld %lld %lld\n",
	       (unsigned long long)(s->messages - s->skipped), (unsigned long long)s->messages,
	       (long long)s->elapsed, (long long)(cpu() - cpu_begin),
	       (long long)percentile(s, .50), (long long)percentile(s, .90),
	       (long long)percentile(s, .99), (long long)percentile(s, .999));
	fflush(stdout);
}

static void print_served(int64_t cpu_begin)
{
	printf("served %lld\n", (long long)(cpu() - cpu_begin));
	fflush(stdout);
}

static void print_ready(int port)
{
	printf("ready %d\n", port);
	fflush(stdout);
}

/* The data: differs from sample to sample and from octet to octet. */
static void fill(unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)((i * 131 + i / 251) ^ opt.seed) | 1;
}

static void check(const unsigned char *p, size_t n, const char *where)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != (unsigned char)(((i * 131 + i / 251) ^ opt.seed) | 1))
			fail("octet %zu of %zu at the %s is %#02x: the data did not arrive as sent", i, n, where, p[i]);
}

static inline void pause_polling(void)
{
	if (opt.shared)
		sched_yield();
}
