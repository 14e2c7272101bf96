# A test as a project may have one, of two RDMA programs that connect by rdma_cm.

.PHONY: test
test:
	ibv_devinfo
	timeout 60 ib_write_bw -R >/dev/null & \
	until timeout 60 ib_write_bw -R 127.0.0.1; do kill -0 $$! || exit 1; done; \
	wait $$!
