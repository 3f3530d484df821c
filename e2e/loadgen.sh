#!/bin/sh
# MLPerf's own LoadGen for the tests of verdicts:
#   loadgen.sh install | run
# It comes as a Python package with a pinned version and lives in $LOADGEN (default
# .cache/loadgen of the project). run prints what it made of some short runs as JSON.
set -eu
cd "$(dirname "$0")/.."
root=${LOADGEN:-.cache/loadgen}
py=${PYTHON:-python3}

case ${1:-} in
install)
	[ -e "$root/ok" ] && exit 0
	mkdir -p "$root"
	if $py -m venv "$root/venv" && "$root/venv/bin/pip" install -q --disable-pip-version-check mlcommons-loadgen==6.0.17; then
		touch "$root/ok"
		exit 0
	fi
	# The test then says that it was not run.
	echo "loadgen.sh: no LoadGen, so nothing is compared: mlcommons-loadgen could not be installed with $py (it needs the venv module, the Python package registry and, where there is no wheel, a C++ compiler)." >&2
	;;
run)
	[ -e "$root/ok" ] || { echo "loadgen.sh: no LoadGen in $root: run ./e2e/loadgen.sh install first" >&2; exit 1; }
	exec "$root/venv/bin/python" e2e/loadgen.py
	;;
*)
	echo "usage: loadgen.sh install | run" >&2
	exit 2
	;;
esac
