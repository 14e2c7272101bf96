/* Programs that do to the library what programs do: `probe` lists the probes, and
 * `probe NAME` runs one. It ends with 0 if the library came through. */
#include "probe.h"

static struct probe *probes;

void add_probe(struct probe *p)
{
	struct probe **at = &probes;
	while (*at && strcmp((*at)->name, p->name) < 0)
		at = &(*at)->next;
	p->next = *at;
	*at = p;
}

int main(int argc, char **argv)
{
	alarm(120);
	for (struct probe *p = probes; p; p = p->next) {
		if (argc < 2) {
			puts(p->name);
		} else if (!strcmp(argv[1], p->name)) {
			p->run();
			return 0;
		}
	}
	return argc < 2 ? 0 : 2;
}
