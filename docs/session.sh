#!/usr/bin/env bash
# Records the terminal session that README.md begins with, as SVG:
#
#   docs/session.sh >docs/session.svg
#
# It runs the commands below on this machine, in a temporary directory, and draws
# what they print. Run it as an ordinary user, with ports 20049 and 2049 free.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'kill %1 2>/dev/null || true; wait; rm -rf "$work"' EXIT
mkdir "$work/bin"
if [[ -n ${WEFT:-} ]]; then # a command that is built already
  cp "$WEFT" "$work/bin/weft"
else
  go build -o "$work/bin/weft" ./cmd/weft
fi
export PATH="$work/bin:$PATH" XDG_STATE_HOME="$work/state"
cd "$work"
mkdir data
head -c 64M /dev/urandom >disk.img

# prompt shows a command as it is typed, and run runs it.
prompt() { printf '$ %s\n' "$1"; }
run() { prompt "$1"; eval "$1" 2>&1 || { echo "failed: $1" >&2; tail serve.log >&2; exit 1; }; echo; }

{
  prompt 'weft serve data 2>serve.log &'
  weft serve data 2>serve.log &
  until grep -qs '^  weft cp' serve.log; do
    kill -0 %1 2>/dev/null || { cat serve.log >&2; exit 1; }
    sleep 0.1
  done
  echo
  run 'weft cp -v --verify disk.img nfs://127.0.0.1/'
  run 'weft ls -lh nfs://127.0.0.1/'
  run 'weft perf --ops write,send,fetchadd --sizes 64,1M --crc on --duration 5s'
} >session.txt

# A line of text is a line of the picture. Its spaces do not break, since viewers make one of several that do.
awk -v size=13 -v line=18 -v width=980 '
  { gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;"); gsub(/>/, "\\&gt;"); gsub(/ /, "\302\240"); text[NR] = $0 }
  END {
    while (NR > 0 && text[NR] == "") NR--
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", width, NR * line + 28, width, NR * line + 28
    print "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>"
    printf "<g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"%d\">\n", size
    for (i = 1; i <= NR; i++)
      if (text[i] != "")
        printf "<text x=\"16\" y=\"%d\" fill=\"%s\">%s</text>\n", i * line + 10, text[i] ~ /^\$/ ? "#8fd18f" : "#d5d8de", text[i]
    print "</g>\n</svg>"
  }' session.txt
