# Copies the tree $1 into the mounted directory $2 and out of it, octet for octet.
# $3 mounts $2 again, so that nothing is read from the client's cache.
set -eu
cp -r "$1" "$2/tree"
sync -f "$2"
eval "$3"
(cd "$2/tree" && md5sum -c --quiet "$1.md5")
cmp "$1/big" "$2/tree/big"
rm -rf /tmp/out
cp -r "$2/tree" /tmp/out
diff -r "$1" /tmp/out
rm -rf /tmp/out
