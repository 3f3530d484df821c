"""What inference-perf needs, and what it found.

    inference_perf.py tokenizer DIR
        a small tokenizer of words, for which each event of a beacon is one token, without any hub
    inference_perf.py config DIR BASE_URL TOKENIZER STREAMS TOKENS
        DIR/config.yml for STREAMS streams of TOKENS tokens, reports into DIR/report
    inference_perf.py errors DIR
        a line of JSON: its own times of chunks less the times of sending in them"""

import json
import math
import os
import sys
import time


def tokenizer(out):
    from tokenizers import Tokenizer, models, pre_tokenizers

    os.makedirs(out, exist_ok=True)
    end = "<|endoftext|>"
    words = [end, "tok", *(f"word{n}" for n in range(1000))]
    vocabulary = {word: n for n, word in enumerate(words)}
    t = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token=end))
    t.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    t.add_special_tokens([end])
    t.save(os.path.join(out, "tokenizer.json"))
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 131072, "eos_token": end, "bos_token": end, "pad_token": end, "unk_token": end}
    with open(os.path.join(out, "tokenizer_config.json"), "w") as f:
        json.dump(about, f)
    with open(os.path.join(out, "config.json"), "w") as f:
        json.dump({"model_type": "gpt2", "vocab_size": len(vocabulary), "bos_token_id": 0, "eos_token_id": 0}, f)


def config(out, url, tokens, streams, output):
    os.makedirs(out, exist_ok=True)
    length = "{min: %d, max: %d, mean: %d, std_dev: 0, total_count: %d}"
    with open(os.path.join(out, "config.yml"), "w") as f:
        f.write(f"""load: {{type: concurrent, stages: [{{num_requests: {streams}, concurrency_level: {streams}}}], num_workers: 1, worker_max_concurrency: {streams + 100}, request_timeout: 60}}
api: {{type: completion, streaming: true}}
server: {{type: vllm, model_name: beacon, base_url: "{url}", ignore_eos: true}}
tokenizer: {{pretrained_model_name_or_path: {os.path.abspath(tokens)}}}
data: {{type: random, input_distribution: {length % (8, 8, 8, streams)}, output_distribution: {length % (output, output, output, streams)}}}
report: {{request_lifecycle: {{summary: true, per_stage: true, per_request: true, percentiles: [50, 99]}}}}
storage: {{local_storage: {{path: {os.path.join(os.path.abspath(out), "report")}}}}}
""")


def errors(out):
    with open(os.path.join(out, "report", "per_request_lifecycle_metrics.json")) as f:
        requests = json.load(f)
    offset = time.time_ns() - time.perf_counter_ns()  # its times are perf_counter's
    found, times = [], []
    for r in requests:
        m = r["info"].get("response_metrics") or {}
        for chunk, at in zip(m.get("response_chunks") or [], m.get("chunk_times") or []):
            i = chunk.find('"ts":')
            if i >= 0:
                found.append(int(at * 1e9) + offset - int(chunk[i + 5 : i + 24]))
                times.append(at)
    found.sort()
    rank = lambda p: found[max(0, math.ceil(len(found) * p) - 1)] if found else 0
    print(json.dumps({
        "events": len(found), "first_ns": int(min(times, default=0) * 1e9) + offset, "last_ns": int(max(times, default=0) * 1e9) + offset,
        "span_ns": int((max(times) - min(times)) * 1e9) if times else 0, "error_ns": [rank(.5), rank(.99), rank(.999), rank(1)],
    }))


match sys.argv[1:]:
    case ["tokenizer", out]:
        tokenizer(out)
    case ["config", out, url, tokens, streams, output]:
        config(out, url, tokens, int(streams), int(output))
    case ["errors", out]:
        errors(out)
    case _:
        sys.exit(__doc__)
