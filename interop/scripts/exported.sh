# Has the kernel's server, which runs, export the directory $2 of the guest's disk, too: what
# is asked for is on disk before it answers. $3 is an empty directory beside it.
set -eu
rm -rf "$2" "$3"
mkdir -p "$2" "$3"
printf '%s *(rw,sync,no_root_squash,no_subtree_check,insecure,fsid=1)\n' "$2" >>/etc/exports
exportfs -ra
