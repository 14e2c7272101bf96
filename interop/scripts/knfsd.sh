# Starts the kernel's NFS server, or leaves it as it is, on TCP and RDMA, with
# the directory $1 exported.
set -eu
mkdir -p "$1"
mountpoint -q "$1" || mount -t tmpfs tmpfs "$1"
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
pidof rpcbind >/dev/null || rpcbind -w
mkdir -p /var/lib/nfs/v4recovery
printf '%s *(rw,async,no_root_squash,no_subtree_check,insecure,fsid=0)\n' "$1" >/etc/exports
exportfs -ra
pidof rpc.mountd >/dev/null || rpc.mountd
[ "$(cat /proc/fs/nfsd/threads)" != 0 ] || rpc.nfsd -G 10 -L 10 8
# Adding a listener that is there already takes Linux 6.1 down.
grep -q '^rdma 20049' /proc/fs/nfsd/portlist || echo 'rdma 20049' >/proc/fs/nfsd/portlist
