/* What the probes have in common. Each probe is a function that ends the process with
 * another status than 0 when the library did something that a program has to be safe from. */
#ifndef PROBE_H
#define PROBE_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#define CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __func__, __LINE__, #what, errno); \
			_exit(1); \
		} \
	} while (0)

/* main.c */
struct probe {
	const char *name;
	void (*run)(void);
	struct probe *next;
};
void add_probe(struct probe *);

#define PROBE(name) \
	static void probe_##name(void); \
	__attribute__((constructor)) static void add_##name(void) \
	{ \
		static struct probe p = {#name, probe_##name, NULL}; \
		add_probe(&p); \
	} \
	static void probe_##name(void)

/* process.c: children, and how they ended: the status of one that exited, 128 and the
 * signal of one that was killed. */
int child(pid_t);
/* Runs a function in a child; it exits with 0 if the function returns. */
int in_child(void (*)(void));

/* connect.c: connections within this process, and with another. */
struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

struct setup {
	struct ibv_context *context;
	struct ibv_pd *pd;
	union ibv_gid gid;
	struct end a, b; /* b is of use if both ends are of this process */
};

struct ibv_context *open_device(void);
struct ibv_qp_init_attr attributes(struct ibv_cq *, struct ibv_srq *);
void make_end(struct setup *, struct end *, struct ibv_srq *);
void join(struct setup *, struct end *, uint32_t number);
int receive_ready(struct setup *, struct end *, uint32_t number); /* returns what the way to RTR returns */
void open_all(struct setup *);
void connect_all(struct setup *);
/* Two queue pairs more. */
void connect_more(struct setup *, struct end *a, struct end *b);
/* Connects end a to that of the process at the other end of a socket. */
void connect_over(struct setup *, int socket);

/* work.c: requests and what comes of them. */
struct ibv_wc next(struct ibv_cq *);
struct ibv_mr *memory(struct setup *, size_t, void **at);
int post(struct ibv_qp *, enum ibv_wr_opcode, void *at, struct ibv_mr *, uint32_t n, void *to, struct ibv_mr *there);
int receive(struct ibv_qp *, void *at, struct ibv_mr *, uint32_t n);
/* A Write arrives. */
void use(struct setup *);

#endif
