/* What the environment says; `weft run` sets it. */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "weft.h"

bool rc_persona(void)
{
	const char *persona = secure_getenv("WEFT_PERSONA");
	return persona && !strcmp(persona, "rc");
}

static bool is_set(const char *name) /* to anything but 0 */
{
	const char *value = secure_getenv(name);
	return value && *value && strcmp(value, "0");
}

const char *device_name(void)
{
	const char *name = secure_getenv("WEFT_DEVICE");
	return name && *name ? name : "weft0";
}

bool also_host(void)
{
	const char *library = secure_getenv("WEFT_ALSO_HOST");
	return library && *library;
}

int uverbs_number(void)
{
	for (int i = 0; also_host() && i < 1024; i++) {
		char name[64];
		snprintf(name, sizeof(name), HOST_ROOT "/sys/class/infiniband_verbs/uverbs%d", i);
		if (access(name, F_OK))
			return i;
	}
	return 0;
}

static void vexplain(const char *format, va_list arguments)
{
	if (!is_set("WEFT_DEBUG"))
		return;
	char line[512];
	int n = snprintf(line, sizeof(line), "weft: ");
	vsnprintf(line + n, sizeof(line) - n - 1, format, arguments);
	fprintf(stderr, "%s\n", line);
}

void explain(const char *format, ...)
{
	int was = errno;
	va_list arguments;
	va_start(arguments, format);
	vexplain(format, arguments);
	va_end(arguments);
	errno = was;
}

static uint32_t refusals;

int refuse(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vexplain(format, arguments);
	va_end(arguments);
	__atomic_add_fetch(&refusals, 1, __ATOMIC_RELAXED);
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

uint32_t refused(void) { return load(&refusals); }
