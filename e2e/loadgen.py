"""Short runs of MLPerf's LoadGen against a system that answers after a sleep.

Prints a JSON list: of each run its settings, its samples as LoadGen's own trace has
them (query, due time, latency, time to first token, tokens; ns), and what LoadGen
said of them. Nothing is timed here: LoadGen's clock is the only one.
"""

import array
import json
import os
import queue
import re
import sys
import tempfile
import threading
import time

import mlperf_loadgen as lg

QUICK, SLOW, BOUND = 100e-6, 60e-3, 30  # s, s, ms


def tokens_of(index):
    return 2 + index % 7


def play(run, folder):
    s = lg.TestSettings()
    s.scenario = getattr(lg.TestScenario, run["scenario"])
    s.mode = lg.TestMode.PerformanceOnly
    s.min_query_count = run["min_queries"]
    s.max_query_count = run.get("max_queries", 0)
    s.min_duration_ms = run["min_duration_ms"]
    s.multi_stream_samples_per_query = 4
    s.server_target_qps = 2000
    s.server_target_latency_ns = BOUND * 1_000_000
    s.use_token_latencies = run["tokens"]
    s.ttft_latency = run.get("ttft_ms", BOUND) * 1_000_000
    s.tpot_latency = run.get("tpot_ms", BOUND) * 1_000_000
    s.single_stream_expected_latency_ns = 1_000_000
    s.multi_stream_expected_latency_ns = 1_000_000
    s.offline_expected_qps = 1
    log = lg.LogSettings()
    log.enable_trace = True
    log.log_output.outdir = folder
    log.log_output.copy_summary_to_stdout = False

    work = queue.Queue()
    slow = set(run.get("slow", []))
    seen = [0]

    def answer(q, number):
        data = array.array("B", b"12345678")
        at, size = data.buffer_info()
        n = tokens_of(q.index)
        late = number in slow and run.get("late", "first")
        if late == "first":
            time.sleep(SLOW)
        if run["tokens"]:
            lg.FirstTokenComplete([lg.QuerySampleResponse(q.id, at, size, 1)])
        if late == "after":
            time.sleep(SLOW * n)
        elif not late:
            time.sleep(QUICK)
        lg.QuerySamplesComplete([lg.QuerySampleResponse(q.id, at, size, n)])

    def worker():
        while True:
            one = work.get()
            if one is None:
                return
            answer(*one)

    threads = [threading.Thread(target=worker) for _ in range(8)]
    for t in threads:
        t.start()

    def issue(samples):
        for q in samples:
            work.put((q, seen[0]))
            seen[0] += 1

    sut = lg.ConstructSUT(issue, lambda: None)
    qsl = lg.ConstructQSL(97, 97, lambda x: None, lambda x: None)
    lg.StartTestWithLogSettings(sut, qsl, s, log, "")
    for _ in threads:
        work.put(None)
    for t in threads:
        t.join()
    lg.DestroyQSL(qsl)
    lg.DestroySUT(sut)


SAMPLE = re.compile(
    r'"name":"Sample".*"ph":"b".*"ts":([0-9.]+),"args":\{"sample_seq":(\d+),"query_seq":(\d+),"sample_idx":(\d+),'
    r'"issue_start_ns":(-?\d+),"complete_ns":(-?\d+)\}'
)
FIRST = re.compile(r'"name":"Token_Latency".*"ts":([0-9.]+),"args":\{ ?"issue_delay":(-?\d+),"issue_to_done":(-?\d+)\}')


def ns(us):
    whole, _, part = us.partition(".")
    return int(whole) * 1000 + int((part + "000")[:3])


def samples_of(folder, tokens):
    samples, first = [], {}
    with open(os.path.join(folder, "mlperf_log_trace.json")) as trace:
        for line in trace:
            if m := SAMPLE.search(line):
                samples.append((int(m[2]), int(m[3]), ns(m[1]), int(m[6]), tokens_of(int(m[4]))))
            elif m := FIRST.search(line):
                first[ns(m[1])] = int(m[2]) + int(m[3])
    samples.sort()
    start = min(s[2] for s in samples)
    return [
        {"query": q, "due_ns": due - start, "latency_ns": latency, "ttft_ns": first.get(due, 0) if tokens else 0, "tokens": n}
        for _, q, due, latency, n in samples
    ]


def said_of(folder):
    said = {}
    with open(os.path.join(folder, "mlperf_log_detail.txt")) as log:
        for line in log:
            entry = json.loads(line[line.index("{") :])
            said[entry["key"]] = entry["value"]
    keep = re.compile(r"result_|early_stopping|num_errors")
    return {k: v for k, v in said.items() if keep.match(k)}


def slow(n, of):
    """n of so many, spread out."""
    return [(2 * i + 1) * of // (2 * n) for i in range(n)]


def runs():
    # Of single streams LoadGen's trace has no first tokens, so that they go without.
    for n in (50, 63, 64, 100, 300, 661, 662, 1000):
        yield {"scenario": "SingleStream", "min_queries": n, "min_duration_ms": 1, "tokens": False, "slow": slow(2, n)}
    yield {"scenario": "SingleStream", "min_queries": 100, "max_queries": 90, "min_duration_ms": 1, "tokens": False}
    yield {"scenario": "SingleStream", "min_queries": 100, "max_queries": 150, "min_duration_ms": 10_000, "tokens": False}
    for n in (100, 661, 662, 840):
        yield {"scenario": "MultiStream", "min_queries": n, "min_duration_ms": 1, "tokens": False, "slow": slow(3, 4 * n)}
    for n, over in ((458, 0), (459, 0), (661, 1), (700, 1), (837, 2), (900, 2), (1000, 3), (1010, 3), (1100, 12)):
        yield {"scenario": "Server", "min_queries": n, "min_duration_ms": 1, "tokens": True, "slow": slow(over, n)}
    for n, over in ((600, 1), (700, 1), (1000, 15)):
        yield {"scenario": "Server", "min_queries": n, "min_duration_ms": 1, "tokens": True, "late": "after", "slow": slow(over, n)}
        yield {"scenario": "Server", "min_queries": n, "min_duration_ms": 1, "tokens": False, "slow": slow(over, n)}
    yield {"scenario": "Server", "min_queries": 700, "max_queries": 600, "min_duration_ms": 1, "tokens": True}
    for n, least in ((300, 1), (300, 10_000)):
        yield {"scenario": "Offline", "min_queries": n, "min_duration_ms": least, "tokens": True}


def main():
    out = []
    for run in runs():
        with tempfile.TemporaryDirectory() as folder:
            play(run, folder)
            out.append({**run, "bound_ms": BOUND, "samples": samples_of(folder, run["tokens"]), "said": said_of(folder)})
    json.dump(out, sys.stdout)
    sys.stdout.flush()
    os._exit(0)


main()
