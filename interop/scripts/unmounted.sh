# Unmounts $1 and makes sure that nothing is left of it in the guest.
set -eu
umount "$1"
! grep -q " $1 " /proc/mounts
for i in $(seq 100); do
	[ -z "$(ss -Htn state established "dport = :$2" 2>/dev/null)" ] && exit 0
	sleep 0.05
done
echo "a connection to port $2 is left" >&2
exit 1
