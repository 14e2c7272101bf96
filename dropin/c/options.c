/* What the environment says; `weft run` sets it. */
#include <stdarg.h>
#include <stdio.h>

#include "weft.h"

bool rc_persona(void)
{
	const char *persona = getenv("WEFT_PERSONA");
	return persona && !strcmp(persona, "rc");
}

const char *device_name(void)
{
	const char *name = getenv("WEFT_DEVICE");
	return name && *name ? name : "weft0";
}

void explain(const char *format, ...)
{
	const char *debug = getenv("WEFT_DEBUG");
	if (!debug || !*debug || !strcmp(debug, "0"))
		return;
	int was = errno;
	char line[512];
	int n = snprintf(line, sizeof(line), "weft: ");
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(line + n, sizeof(line) - n - 1, format, arguments);
	va_end(arguments);
	fprintf(stderr, "%s\n", line);
	errno = was;
}
