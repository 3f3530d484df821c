"""A reader in the manner of Python benchmark clients: one aiohttp task a stream, chunks as they
come, split at blank lines, time.perf_counter() for each event.

    aiohttp_reader.py ADDRESS TARGET STREAMS EVENTS

It posts one request to TARGET of a beacon on each of STREAMS connections, reads EVENTS events of
each, and prints a line of JSON. Errors are its stamps less the events' times of sending."""

import asyncio
import json
import math
import resource
import sys
import time

import aiohttp

address, target, streams, events = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def wall_minus_perf():
    """The wall clock less perf_counter, ns, by the closest of many readings."""
    best = None
    for _ in range(200):
        a, wall, b = time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()
        if best is None or b - a < best[0]:
            best = (b - a, wall - (a + b) // 2)
    return best[1]


def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def peak_kib():
    """The most memory that this process had; getrusage would count what was there before exec."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:"))


stamps, sent, started = [], [], []


async def stream(session):
    async with session.post(f"http://{address}{target}", json={}) as response:
        rest = b""
        async for part in response.content.iter_any():
            rest += part
            while b"\n\n" in rest:
                event, rest = rest.split(b"\n\n", 1)
                data = event.strip().decode().removeprefix("data: ")
                if data == "[DONE]":
                    return
                now = time.perf_counter()
                at = data.find('"ts":')
                if at < 0:
                    continue
                if not started:
                    started.append(cpu())
                stamps.append(now)
                sent.append(int(data[at + 5 : at + 24]))


async def main():
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        done = await asyncio.gather(*(stream(session) for _ in range(streams)), return_exceptions=True)
    return [e for e in done if e]


failed = asyncio.run(main())
used = cpu() - (started[0] if started else 0)
offset = wall_minus_perf()
errors = sorted(int(t * 1e9) + offset - s for t, s in zip(stamps, sent))


def rank(p):
    return errors[max(0, math.ceil(len(errors) * p) - 1)] if errors else 0


for e in failed[:3]:
    print(repr(e), file=sys.stderr)
print(json.dumps({
    "events": len(errors), "wanted": streams * events, "span_ns": int((max(stamps) - min(stamps)) * 1e9) if stamps else 0,
    "cpu_ns": int(used * 1e9), "rss_kib": peak_kib(),
    "error_ns": [rank(.5), rank(.99), rank(.999), rank(1)],
}))
