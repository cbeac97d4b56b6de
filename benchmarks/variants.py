import sys, json, time
import torch
sys.path.insert(0, "benchmarks")
import bot_clocks as b
import sparring.kernels as k
from sparring.games.rules import Rules
from sparring.pools.cuda import CudaPool
import sparring.pools.cuda.pool as P
game, variant, mode = sys.argv[1:4]
more = {"base": ({}, []), "philox": ({"SPARRING_PHILOX_APART": 1}, []),
        "fastmin": ({}, ["--Ofast-compile=min"]), "fastmid": ({}, ["--Ofast-compile=mid"]),
        "regs": ({}, ["--maxrregcount=64"]),
        "philoxmin": ({"SPARRING_PHILOX_APART": 1}, ["--Ofast-compile=min"])}[variant]
old = k.run_compiler
k.run_compiler = lambda source, options: old(source, [*options, *more[1]])
oldf = k.fingerprint
k.fingerprint = lambda source, options: oldf(source + "//" + variant, options)
oldb = P.build
P.build = lambda source, defines, **kw: oldb(source, {**defines, **more[0]}, **kw)
config, lineups, _ = b.CASES[game]
rules = Rules(game, config)
if mode == "compile":
    CudaPool(rules, 32, seed=1, lineups=lineups)
    raise SystemExit
for games in (16384, 4224, 1056) if variant == "base" else (16384,):
    for name, who in (("bots", lineups), ("self-play", None)):
        pool = CudaPool(rules, games, seed=1, lineups=who)
        pool.reset()
        for _ in range(150): pool.step(pool.sample_actions())
        print(game, variant, games, name, {per: round(b.step_us(pool, per), 1) for per in (32, 16, 8, 4, 1)}, flush=True)
        pool._observe = False; pool._make_views()
        print(game, variant, games, name, "unseen", {per: round(b.step_us(pool, per), 1) for per in (32, 8)}, flush=True)
        if games == 16384 and name == "bots":
            import numpy as np
            print("digest", int(pool.tables.to(torch.int64).sum()))
