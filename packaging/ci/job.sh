#!/bin/sh
# Runs a command of a CI job with RDMA, on a machine without. Root is not needed, and
# nothing stays behind.
#
#   job.sh PACKAGE COMMAND [ARGS...]      PACKAGE is Weft's .deb or .rpm
#   job.sh weft_1.0.0_amd64.deb make test
set -eu
package=$(realpath "$1")
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 129' HUP # signals end a shell without its EXIT otherwise
trap 'exit 130' INT
trap 'exit 143' TERM
case $package in
*.rpm) (cd "$dir" && rpm2cpio "$package" | cpio --extract --make-directories --no-absolute-filenames --quiet) ;;
*) dpkg-deb --extract "$package" "$dir" ;;
esac
"$dir/usr/bin/weft" run -- "$@"
