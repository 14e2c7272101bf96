/* Files of sysfs, which programs read through the library. Those of the device
 * are not there: the library answers for them. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "weft.h"

const char *ibv_get_sysfs_path(void) { return "/sys"; }

int device_file(const char *folder, const char *file, char *text, size_t room)
{
	char ours[IBV_SYSFS_PATH_MAX];
	snprintf(ours, sizeof(ours), "/sys/class/infiniband/%s", device_name());
	if (strcmp(folder, ours))
		return -1;
	const struct {
		const char *file, *text;
	} files[] = {
		{"node_type", rc_persona() ? "1: CA" : "4: RNIC"}, {"board_id", "weft"}, {"hca_type", "Weft"}, {"fw_ver", "weft"},
		{"ports/1/link_layer", "Ethernet"},
	};
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (!strcmp(file, files[i].file))
			return snprintf(text, room, "%s", files[i].text);
	return -1;
}

int ibv_read_sysfs_file(const char *folder, const char *file, char *text, size_t room)
{
	int n = device_file(folder, file, text, room);
	if (n >= 0)
		return n;
	char path[2 * IBV_SYSFS_PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/%s", folder, file) >= (int)sizeof(path))
		return -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t got = read(fd, text, room);
	close(fd);
	if (got > 0 && text[got - 1] == '\n')
		text[--got] = 0;
	else if (got >= 0 && (size_t)got < room)
		text[got] = 0;
	return got;
}
