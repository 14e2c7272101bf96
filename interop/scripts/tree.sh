# Makes a tree of 200 files and one of 64 MiB in $1, with md5 sums in $1.md5.
set -eu
rm -rf "$1" "$1.md5"
mkdir -p "$1"
for d in $(seq 10); do
	mkdir -p "$1/dir$d/sub"
	for f in $(seq 10); do
		head -c $((d * f * 1371 + f)) /dev/urandom >"$1/dir$d/file$f"
		head -c $((d + f)) /dev/urandom >"$1/dir$d/sub/small$f"
	done
done
head -c 67108864 /dev/urandom >"$1/big"
(cd "$1" && find . -type f | LC_ALL=C sort | xargs md5sum) >"$1.md5"
[ "$(wc -l <"$1.md5")" = 201 ]
