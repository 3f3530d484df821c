#!/bin/sh
# The clients that Fermata is compared with, as Python packages with pinned versions, in
# $PEERS (default .cache/peers of the project):
#   peers.sh install | python
# install makes the environment; python prints the interpreter in it.
set -eu
cd "$(dirname "$0")/.."
root=${PEERS:-.cache/peers}
what=${1:-}

# newest finds a Python that the peers run on, 3.12 or later.
newest() {
	for py in "${PYTHON:-}" python3 python3.14 python3.13 python3.12; do
		[ -n "$py" ] && "$py" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && { echo "$py"; return; }
	done
	for py in "$HOME"/.pyenv/versions/3.1[2-9]*/bin/python3; do
		[ -x "$py" ] && { echo "$py"; return; }
	done
	echo "peers.sh: no Python 3.12 or later was found: install one with its venv module, or name it with PYTHON=" >&2
	exit 1
}

case $what in
install)
	[ -e "$root/ok" ] && exit 0
	mkdir -p "$root"
	echo "installing inference-perf and aiohttp into $root" >&2
	py=$(newest)
	"$py" -m venv "$root/venv"
	"$root/venv/bin/pip" install -q --disable-pip-version-check inference-perf==0.7.0 aiohttp==3.14.5 || {
		echo "peers.sh: the peers could not be installed from the Python package registry, so nothing was compared." >&2
		exit 1
	}
	"$root/venv/bin/python" bench/inference_perf.py tokenizer "$root/tokenizer"
	touch "$root/ok"
	;;
python)
	echo "$root/venv/bin/python"
	;;
*)
	echo "usage: $0 install | python" >&2
	exit 2
	;;
esac
