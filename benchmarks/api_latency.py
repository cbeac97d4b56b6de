"""How long an agent takes to answer programs, and how many it answers: batched against one by one.

python benchmarks/api_latency.py                       a network like Skull King's, 1, 8, 64 clients
python benchmarks/api_latency.py --run runs/skull      an agent of yours
python benchmarks/api_latency.py --json FILE           ... and keep what was measured

Two servers, `--batch 64` and `--batch 1`, run all the time and are asked in turn, so that a busy
moment of the machine hits both. Every client asks again as soon as it is answered, over a
connection that it keeps; all clients together are one process, which takes its share of the cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from sparring.config import NetConfig
from sparring.games.rules import Rules
from sparring.machine import machine_facts, warn_if_busy
from sparring.nets.make import make_net
from sparring.nets.policy import Policy
from sparring.pools import Pool
from sparring.store.policies import load_policy, save_policy

KINDS = {"batched": 64, "one by one": 1}


def start(agent: Path, batch: int, wait_ms: float) -> tuple[subprocess.Popen[str], int]:
    """Start a server; return it and its port."""
    command = [sys.executable, "-m", "sparring", "serve", str(agent.parent), "--port", "0"]
    command += ["--api", "--agent", str(agent), "--batch", str(batch), "--wait-ms", str(wait_ms)]
    server = subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    line = ""
    while not line.rstrip().endswith("}"):
        line += server.stdout.readline()
    return server, int(json.loads(line)["port"])


def questions(rules: Rules, count: int) -> list[bytes]:
    """Return requests about decisions of random play, whole as they go over the wire."""
    pool = Pool(rules, count, seed=1)
    batch = pool.reset()
    for _ in range(20):
        batch = pool.step(pool.sample_actions())
    asked = []
    for obs, mask in zip(batch.obs[:count], batch.mask[:count], strict=True):
        body: dict[str, Any] = {"obs": obs.tolist(), "top": 0}
        if not rules.box:
            body["mask"] = mask.tolist()
        raw = json.dumps(body, separators=(",", ":")).encode()
        head = (
            "POST /api/act HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            f"content-length: {len(raw)}\r\n\r\n"
        )
        asked.append(head.encode() + raw)
    return asked


async def client(port: int, asked: list[bytes], ends: float, first: int) -> list[float]:
    """Ask until time is up; return how long every answer took, in seconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    taken, at = [], first
    while (began := time.perf_counter()) < ends:
        writer.write(asked[at % len(asked)])
        at += 1
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"the server refused: {head.splitlines()[0].decode()}")
        length = next(
            int(line.split(b":")[1])
            for line in head.lower().splitlines()
            if line.startswith(b"content-length")
        )
        await reader.readexactly(length)
        taken.append(time.perf_counter() - began)
    writer.close()
    return taken


def turn(port: int, asked: list[bytes], clients: int, seconds: float) -> tuple[list[float], float]:
    """Let clients ask for a while; return the answers' times, and how long it was."""

    async def all_of_them() -> list[list[float]]:
        ends = time.perf_counter() + seconds
        return await asyncio.gather(
            *(client(port, asked, ends, first=7 * one) for one in range(clients))
        )

    began = time.perf_counter()
    taken = [one for each in asyncio.run(all_of_them()) for one in each]
    return taken, time.perf_counter() - began


def measure(ports: dict[str, int], asked: list[bytes], options: Any) -> list[dict[str, Any]]:
    """Ask both servers in turn with every number of clients."""
    rows = []
    for clients in options.clients:
        for port in ports.values():
            turn(port, asked, clients, 0.3)
        taken: dict[str, list[float]] = {kind: [] for kind in ports}
        rates: dict[str, list[float]] = {kind: [] for kind in ports}
        for _ in range(options.turns):
            for kind, port in ports.items():
                found, wall_s = turn(port, asked, clients, options.seconds)
                taken[kind] += found
                rates[kind].append(len(found) / wall_s)
        for kind in ports:
            low, high = np.percentile(taken[kind], [50, 99]) * 1000
            rows.append(
                {
                    "clients": clients,
                    "kind": kind,
                    "p50_ms": round(float(low), 2),
                    "p99_ms": round(float(high), 2),
                    "rows_per_s": round(statistics.median(rates[kind])),
                    "answers": len(taken[kind]),
                }
            )
        ratios = [a / b for a, b in zip(rates["batched"], rates["one by one"], strict=True)]
        rows[-2]["times_as_many"] = round(statistics.median(ratios), 2)
    return rows


def main() -> None:
    """Read options, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run", help="a run or a saved policy; left out: a fresh network")
    parser.add_argument("--game", default="skull_king", help="of the fresh network")
    parser.add_argument("--hidden", type=int, nargs="+", default=[256, 256])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--seconds", type=float, default=2.0, help="of a turn")
    parser.add_argument("--turns", type=int, default=3, help="of each server")
    parser.add_argument("--wait-ms", type=float, default=1.0)
    parser.add_argument("--json", type=Path, help="write what was measured to this file")
    options = parser.parse_args()
    facts = machine_facts()
    warn_if_busy(facts["load_average"])
    with tempfile.TemporaryDirectory() as folder:
        if options.run:
            agent, rules = Path(options.run).resolve(), load_policy(options.run).rules
        else:
            rules = Rules(options.game)
            net = make_net(rules, NetConfig(hidden=tuple(options.hidden)))
            agent = save_policy(Policy(rules, net), Path(folder) / "agent")
        asked = questions(rules, 256)
        servers = {kind: start(agent, batch, options.wait_ms) for kind, batch in KINDS.items()}
        try:
            ports = {kind: port for kind, (_, port) in servers.items()}
            rows = measure(ports, asked, options)
        finally:
            for server, _ in servers.values():
                os.kill(server.pid, signal.SIGINT)
                server.wait(10)
    print(f"{rules.name}, requests of {len(asked[0]):,} bytes")
    print(f"{'clients':>7}  {'':10}  {'p50 ms':>7}  {'p99 ms':>7}  {'rows/s':>7}  times as many")
    for row in rows:
        print(
            f"{row['clients']:7}  {row['kind']:10}  {row['p50_ms']:7}  {row['p99_ms']:7}  "
            f"{row['rows_per_s']:7}  {row.get('times_as_many', '')}"
        )
    if options.json:
        found = {"machine": facts, "game": rules.name, "rows": rows}
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
