# Does in the mounted directory $1 what programs do with files, and looks at what
# came of it. $2 mounts $1 again.
set -eu
cd "$1"
mkdir work && cd work
fail() { echo "$*" >&2; exit 1; }
same() { [ "$2" = "$3" ] || fail "$1: is '$2', expected '$3'"; }

echo one >a && mv a b && same "after rename" "$(ls)" b
echo two >c && mv -f c b && same "rename over a file" "$(cat b)" two
mkdir d e && mv -T d e && same "rename over an empty directory" "$(echo *)" "b e"
rm b && rmdir e && same "after remove" "$(ls)" ""
mkdir full && touch full/x && ! rmdir full 2>/dev/null || fail "a directory that is not empty was removed"
rm -r full

echo text >file && ln -s file link && same "a symlink" "$(cat link)" text && same "readlink" "$(readlink link)" file
ln -s /etc/passwd out && same "a symlink that leads out is the client's to follow" "$(readlink out)" /etc/passwd
ln file hard && same "nlink" "$(stat -c %h file)" 2
same "inode of a hard link" "$(stat -c %i file)" "$(stat -c %i hard)"
echo more >>hard && same "both names" "$(cat file)" "$(printf 'text\nmore')"
rm file && same "nlink" "$(stat -c %h hard)" 1
mkfifo pipe && same "a fifo" "$(stat -c %F pipe)" fifo
mknod null c 1 3 && same "a device" "$(stat -c '%F %t %T' null)" "character special file 1 3"

(set -C; ! : >hard) 2>/dev/null || fail "an exclusive create took a file that was there"
(set -C; : >new) || fail "an exclusive create"

touch -d '2001-02-03 04:05:06.123456789 UTC' new && same "times" "$(TZ=UTC stat -c %y new)" "2001-02-03 04:05:06.123456789 +0000"
chmod 6751 new && same "mode" "$(stat -c %a new)" 6751
chown 1234:4321 new && same "owner, and that it clears setuid" "$(stat -c '%u:%g' new)" 1234:4321
truncate -s 5000000001 new && same "size" "$(stat -c %s new)" 5000000001
echo far | dd of=new bs=1 seek=4999999990 conv=notrunc status=none
same "beyond 4 GiB" "$(dd if=new bs=1 skip=4999999990 count=3 status=none)" far
[ "$(stat -c %b new)" -lt 1000 ] || fail "the hole takes room"
same "in the hole" "$(dd if=new bs=1 skip=4294967290 count=4 status=none | od -An -tx1 | tr -d ' ')" 00000000
truncate -s 0 new && same "size" "$(stat -c %s new)" 0

name=$(printf 'caf\351 \001\377')
echo raw >"$name" && same "a name that is no UTF-8" "$(cat "$name")" raw && rm "$name"
long=$(printf %0255d 0) && : >"$long" && rm "$long"
! : >"${long}0" 2>/dev/null || fail "a name of 256 octets"

dd if=/dev/urandom of=synced bs=64k count=16 conv=fsync status=none
sum=$(md5sum <synced)
exec 3<synced && rm synced && same "a file that was removed while open" "$(md5sum <&3)" "$sum" && exec 3<&-

mkdir many && (cd many && seq -f 'entry-%05g' 5000 | xargs touch)
cd / && eval "$2" && cd "$1/work"
same "entries" "$(ls many | wc -l)" 5000
same "names" "$(ls many | LC_ALL=C sort | md5sum)" "$(seq -f 'entry-%05g' 5000 | md5sum)"
find many -name 'entry-*[02468]' -delete && same "after removing while listing" "$(ls many | wc -l)" 2500
rm -r many
same "what is left" "$(LC_ALL=C ls | tr '\n' ' ')" "hard link new null out pipe "
df "$1" >/dev/null
cd .. && rm -r work
