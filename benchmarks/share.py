import os, sys, gc, statistics as st, time
import torch
from sparring.commands.bench.settings import read_settings
from sparring.config import BenchTrainConfig
from sparring.commands.bench.train import measurable, play_through
from sparring.training.planning.plan import resolve
from sparring.training.planning.settings import members_of
from sparring.measuring.rounds import measure_round
game = sys.argv[1]
for combo in sys.argv[2:]:
    groups, per = combo.split(",")[:2]
    opp = combo.split(",")[2:]
    os.environ["SPARRING_GROUPS"], os.environ["SPARRING_PER_WARP"] = groups, per
    t = time.time()
    try:
        c = BenchTrainConfig(game, config=f"benchmarks/settings/{game}.toml", device="cuda", **({"opponents": ("self=1",)} if opp else {}))
        s = read_settings(c); plan = resolve(members_of(s)); l = measurable(s, plan)
        play_through(l.pool, 120)
        for _ in range(3): measure_round(l)
        for _ in range(2): measure_round(l, free=True)
        ours = [measure_round(l) for _ in range(4)]; free = [measure_round(l, free=True) for _ in range(4)]
        rate = lambda r: st.median(x.samples / x.seconds for x in r)
        ph = ours[-1].phases
        print(game, combo, f"ours {rate(ours)/1e6:.2f}M ceiling {rate(free)/1e6:.2f}M share {rate(ours)/rate(free):.3f}",
              {k: round(1000*v, 1) for k, v in ph.items()}, "free", {k: round(1000*v, 1) for k, v in free[-1].phases.items()}, f"{time.time()-t:.0f}s", flush=True)
        l.pool.check()
        print(l.pool.audit()[:200], end="", flush=True)
        del l; gc.collect(); torch.cuda.empty_cache()
    except Exception as e:
        import traceback; traceback.print_exc()
        print(game, combo, "FAILED", repr(e)[:400], flush=True)
