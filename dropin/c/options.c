/* What the environment says; `weft run` sets it. */
#include <stdarg.h>
#include <stdio.h>

#include "weft.h"

bool rc_persona(void)
{
	const char *persona = getenv("WEFT_PERSONA");
	return persona && !strcmp(persona, "rc");
}

bool is_set(const char *name)
{
	const char *value = getenv(name);
	return value && *value && strcmp(value, "0");
}

const char *device_name(void)
{
	const char *name = getenv("WEFT_DEVICE");
	return name && *name ? name : "weft0";
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
