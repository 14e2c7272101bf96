/* Prints the name of the first device. It is run set-uid. */
#include <infiniband/verbs.h>
#include <stdio.h>

int main(void)
{
	struct ibv_device **all = ibv_get_device_list(NULL);
	if (!all || !all[0])
		return 1;
	puts(ibv_get_device_name(all[0]));
	return !ibv_open_device(all[0]);
}
