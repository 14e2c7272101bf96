// An initiator that writes a file to a disk of an iSER target and reads it back.
//
//	blocks URL INITIATOR FILE

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>

enum { BLOCK = 512, BLOCKS = 128 }; // 64 KiB a command

static struct iscsi_context *iscsi;

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, iscsi_get_error(iscsi));
	exit(1);
}

static void check(struct scsi_task *task, const char *what)
{
	if (!task || task->status != SCSI_STATUS_GOOD)
		fail(what);
}

int main(int argc, char **argv)
{
	static unsigned char buf[BLOCK * BLOCKS];

	if (argc != 4 || !(iscsi = iscsi_create_context(argv[2])))
		return 2;
	struct iscsi_url *url = iscsi_parse_full_url(iscsi, argv[1]);
	if (!url)
		fail("URL");
	iscsi_set_session_type(iscsi, ISCSI_SESSION_NORMAL);
	if (iscsi_full_connect_sync(iscsi, url->portal, url->lun))
		fail("connect");
	int fd = open(argv[3], O_RDONLY);
	if (fd < 0)
		return 2;
	uint32_t lba = 0;
	for (; read(fd, buf, sizeof buf) == sizeof buf; lba += BLOCKS) {
		struct scsi_task *task = iscsi_write10_sync(iscsi, url->lun, lba, buf, sizeof buf, BLOCK, 0, 0, 0, 0, 0);
		check(task, "WRITE(10)");
		scsi_free_scsi_task(task);
	}
	lseek(fd, 0, SEEK_SET);
	for (uint32_t at = 0; at < lba; at += BLOCKS) {
		struct scsi_task *task = iscsi_read10_sync(iscsi, url->lun, at, sizeof buf, BLOCK, 0, 0, 0, 0, 0);
		check(task, "READ(10)");
		if (read(fd, buf, sizeof buf) != sizeof buf || task->datain.size != sizeof buf || memcmp(task->datain.data, buf, sizeof buf)) {
			printf("block %u differs\n", at);
			return 1;
		}
		scsi_free_scsi_task(task);
	}
	struct scsi_task *task = iscsi_synchronizecache10_sync(iscsi, url->lun, 0, 0, 0, 0);
	check(task, "SYNCHRONIZE CACHE(10)");
	printf("%u blocks are equal\n", lba);
	iscsi_logout_sync(iscsi);
	return 0;
}
