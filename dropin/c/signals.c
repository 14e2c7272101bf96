/* Handlers of the program's signals, while the engine is loaded.
 *
 * A thread of the program that is in the engine is on the stack of a goroutine, which has no
 * room for a handler: it would write over what is next to the stack. So handlers run on the
 * alternate stack that the Go runtime gives to such a thread: they get SA_ONSTACK, those that
 * are there when the engine is loaded and those that the program installs later. In a thread
 * without an alternate stack the flag has no effect.
 */
#include <signal.h>

#include "weft.h"

static bool has_handler(const struct sigaction *a) { return a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN; }

static int redirected_sigaction(int number, const struct sigaction *a, struct sigaction *was)
{
	struct sigaction with;
	if (a && has_handler(a) && load(&weft_engine)) {
		with = *a;
		with.sa_flags |= SA_ONSTACK;
		a = &with;
	}
	return sigaction(number, a, was);
}

/* Moves the handler of a signal, if there is one. */
static void move(int number)
{
	struct sigaction a;
	if (!sigaction(number, NULL, &a) && has_handler(&a) && !(a.sa_flags & SA_ONSTACK)) {
		a.sa_flags |= SA_ONSTACK;
		sigaction(number, &a, NULL);
	}
}

/* The calls before sigaction differ in what else they set. */
static sighandler_t moved(int number, sighandler_t was)
{
	if (was != SIG_ERR && load(&weft_engine))
		move(number);
	return was;
}

static sighandler_t redirected_signal(int number, sighandler_t handler) { return moved(number, signal(number, handler)); }
static sighandler_t redirected_sysv(int number, sighandler_t handler) { return moved(number, sysv_signal(number, handler)); }

static const struct redirection functions[] = {
	{"sigaction", redirected_sigaction}, {"__sigaction", redirected_sigaction},
	{"signal", redirected_signal}, {"bsd_signal", redirected_signal}, {"ssignal", redirected_signal},
	{"sysv_signal", redirected_sysv}, {"__sysv_signal", redirected_sysv},
};

/* The runtime has what it needs, and this library calls the functions themselves. */
static bool is_program(const char *library)
{
	return strncmp(library, "libibverbs.so", 13) && strncmp(library, "libweft-engine", 14) && strncmp(library, "libc.so", 7);
}

void redirect_signals(void)
{
	redirect(is_program, functions, sizeof(functions) / sizeof(*functions));
	for (int number = 1; number < NSIG; number++)
		move(number);
}
