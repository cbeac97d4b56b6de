"""Where the time of a step goes on a GPU when bots sit at the tables: cycles by kind of decision.

python benchmarks/bot_clocks.py                   Kuhhandel's dealers, Skull King's captains, hockey
python benchmarks/bot_clocks.py --game kuhhandel  ... one of them
python benchmarks/bot_clocks.py --json            the figures alone

A kernel of its own plays copies of the games, at random where a policy is asked, and reads the
clock around every decision of a bot, every step of the rules and every look at the legal actions.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import torch

from sparring.games.rules import Rules
from sparring.kernels import build
from sparring.pools.cuda import SOURCE, CudaPool, sizes_of
from sparring.pools.lineups import Lineup
from sparring.pools.native import Pool

KINDS = 16
"""Kinds of a bot's decisions that are told apart: the phases of a game."""
MEASURED = ("bot", "rules", "look")
PER_WARP = (32, 16, 8, 4, 2, 1)
CLOCKED_AT = (32, 8)
CASES: dict[str, tuple[dict[str, Any], list[Lineup], tuple[str, ...]]] = {
    "kuhhandel": (
        {"skip_forced": 1, "reward": "POTENTIAL"},
        [Lineup((0, 0, 0)), Lineup((0, "dealer", "dealer"))],
        ("turn", "bid", "tens digit", "decide", "pay", "offer", "respond", "counter"),
    ),
    "skull_king": (
        {},
        [Lineup((0,) * 4), Lineup((0, "captain", "captain", "captain"))],
        (),
    ),
    "laser_hockey": (
        {"scale_observation": 1},
        [
            Lineup((0, 0)),
            Lineup((0, "weak")),
            Lineup((0, "strong")),
            Lineup((0, "idle"), weight=0.3),
            Lineup((0, "random"), weight=0.3),
        ],
        (),
    ),
}
CLOCKED = """
namespace sparring {

template <class Game>
__device__ inline int kind_of(const Game& game) {
  if constexpr (requires { static_cast<int>(game.phase); })
    return static_cast<int>(game.phase) % 16;
  else
    return 0;
}

template <class Game>
__device__ inline Game::Action forced_action(const Legal<Game>& legal) {
  if constexpr (kDiscrete<Game>)
    return legal.lowest();
  else
    return {};
}

// What is added up: [3, 16, count cycles longest], in shared memory, where it hardly disturbs.
__shared__ u32 clocks[3 * 16 * 3];
__device__ inline void clock_in(int what, int kind, i64 cycles) {
  u32* to = clocks + (what * 16 + kind) * 3;
  atomicAdd(to, 1u);
  atomicAdd(to + 1, static_cast<u32>(cycles) / 16);
  atomicMax(to + 2, static_cast<u32>(cycles) / 16);
}

extern "C" __global__ void __launch_bounds__(kWarp)
    clocked(SPARRING_VIEW GamesView games, int decisions, u64* sums, u64* moves) {
  const Share share(games);
  const Stage stage(games.tables + share.first, share.count);
  __shared__ Setting<G> setting;
  load_setting(setting, games, share.first);
  const int game = share.game;
  const u32 global = setting.first_game + static_cast<u32>(game % games.each);
  u8* side = games.side_of(game);
  for (int i = Stage::lane(); i < 144; i += kWarp) clocks[i] = 0;
  __syncwarp();
  for (int decision = 0; decision < decisions; ++decision) {
    const i64 begun = clock64();
    u32 played = 0;
    if (share.mine) {
      Table<G>& table = stage.table();
      f32 paid[kPaid] = {};
      Legal<G> legal[G::kRows];
      Rng dice(setting.seed, global, table.episode, Stream::kSampling, table.sampled);
      Turn turn = look(table, setting, side, legal);
      for (;;) {
        Result result = result_into(paid, setting, table.player);
        G::Action actions[G::kRows]{};
        Rng bots(setting.seed, global, table.episode, Stream::kBots, table.bots_drawn);
        for (int row = 0; row < G::kRows; ++row) {
          const int seat = table.game.seat(row);
          if (seat < 0) continue;
          const int player = table.player[seat];
          if (turn == Turn::kForced) {
            actions[row] = forced_action<G>(legal[row]);
          } else if (player >= 0) {
            actions[row] = sample_action<G>(legal[row], dice);
          } else {
            const i64 from = clock64();
            actions[row] = bot_action(table, setting, row, player, legal[row], bots, side);
            clock_in(0, kind_of(table.game), clock64() - from);
          }
        }
        table.bots_drawn = bots.drawn();
        const int kind = kind_of(table.game);
        i64 from = clock64();
        take_step(table, setting, global, side, actions, result);
        clock_in(1, kind, clock64() - from);
        ++played;
        if (result.over()) deal_episode(table, setting, global, side);
        from = clock64();
        turn = look(table, setting, side, legal);
        clock_in(2, 0, clock64() - from);
        if (turn == Turn::kPolicies) break;
      }
      table.sampled = dice.drawn();
    }
    const u32 longest = __reduce_max_sync(~0u, played), all = __reduce_add_sync(~0u, played);
    if (Stage::lane() == 0) {  // [moves, the longest of every warp, warps, cycles, slowest]
      const u64 took = static_cast<u64>(clock64() - begun);
      const u64 found[4] = {all, longest, 1, took};
      for (int i = 0; i < 4; ++i) atomicAdd(moves + i, found[i]);
      atomicMax(moves + 4, took);
    }
    __syncwarp();
  }
  for (int i = Stage::lane(); i < 144; i += kWarp) {
    if (i % 3 == 2)
      atomicMax(sums + i, u64{clocks[i]} * 16);
    else
      atomicAdd(sums + i, u64{clocks[i]} * (i % 3 == 1 ? 16 : 1));
  }
}

}  // namespace sparring
"""


def main() -> None:
    """Measure the games that were asked for and print a table for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--game", choices=sorted(CASES))
    parser.add_argument("--games", type=int, default=16384)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("torch sees no GPU here; nothing to measure")
    names = [given.game] if given.game else list(CASES)
    found = {name: measured(name, given.games) for name in names}
    if given.json:
        print(json.dumps(found, indent=1))
        return
    for name, one in found.items():
        for line in lines_of(name, one):
            print(line)


def measured(game: str, games: int) -> dict[str, Any]:
    """Time the step kernel for several numbers of games a warp, then read the clocks."""
    config, lineups, _ = CASES[game]
    rules = Rules(game, config)
    pool = CudaPool(rules, games, seed=1, lineups=lineups)
    alone = CudaPool(rules, games, seed=1)
    steps = {}
    for name, own in (("bots", pool), ("self-play", alone)):
        own.reset()
        for _ in range(200):
            own.step(own.sample_actions())
        steps[name] = {per: round(step_us(own, per), 1) for per in PER_WARP}
    return {"step_us": steps, "clocks": {per: clocks(pool, per) for per in CLOCKED_AT}}


def step_us(pool: CudaPool, per_warp: int, steps: int = 32) -> float:
    """Microseconds of one step kernel, as a graph has it: with sampling, less sampling alone."""
    pool.spread(per_warp)
    took = [graph_ms(lambda: pool.step(pool.sample_actions()), steps)]
    took += [graph_ms(lambda: (pool.sample_actions(), pool._expand_mask()), steps)]
    return 1000 * (took[0] - took[1]) / steps


def graph_ms(work: Any, times: int) -> float:
    """Milliseconds of a graph that does something several times; the best of five."""
    graph = torch.cuda.CUDAGraph()
    work()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(times):
            work()
    best = float("inf")
    for _ in range(5):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        graph.replay()
        events[1].record()
        torch.cuda.synchronize()
        best = min(best, events[0].elapsed_time(events[1]))
    return best


def clocks(pool: CudaPool, per_warp: int, decisions: int = 16) -> dict[str, Any]:
    """Play copies of the games and return the cycles by kind of decision."""
    pool.spread(per_warp)
    host = Pool(pool.rules, 1, threads=1)
    source = SOURCE.format(name=pool.rules.name) + CLOCKED
    kernels = build(source, sizes_of(pool.rules, host), exact=True, device=pool.device)
    kernels.clocked.reserve(pool._staged * per_warp)
    kept = pool.tables.clone(), pool.side.clone()
    sums = torch.zeros(3, KINDS, 3, dtype=torch.int64, device=pool.device)
    moves = torch.zeros(5, dtype=torch.int64, device=pool.device)
    view = kernels.view("GamesView", **games_fields(pool, per_warp))
    kernels.clocked(-(-pool.num_games // per_warp), 32, view, decisions, sums, moves)
    pool.tables.copy_(kept[0])
    pool.side.copy_(kept[1])
    every, longest, warps, cycles, slowest = moves.tolist()
    names = CASES[pool.rules.name][2]
    kinds = {}
    for what, of in zip(MEASURED, sums.tolist(), strict=True):
        for kind, (count, total, most) in enumerate(of):
            if count:
                name = names[kind] if kind < len(names) else str(kind)
                kinds[f"{what} {name}" if what != "look" else "look"] = {
                    "count": count,
                    "mean": round(total / count),
                    "longest": most,
                }
    return {
        "moves_per_decision": round(every / (decisions * pool.num_games), 2),
        "longest_of_a_warp": round(longest / warps, 2),
        "cycles_per_step": round(cycles / warps),
        "slowest_step": slowest,
        "kinds": kinds,
    }


def games_fields(pool: CudaPool, per_warp: int) -> dict[str, Any]:
    """What the view of the pool's games is filled with; nothing is counted."""
    return {
        "tables": pool.tables,
        "settings": pool.settings,
        "games": pool.num_games,
        "each": pool.each,
        "per_warp": per_warp,
        "side": pool.side,
        "memory": pool.memory,
        "counts": None,
        "replicas": 1,
    }


def lines_of(game: str, found: dict[str, Any]) -> list[str]:
    """A game's figures as people read them."""
    lines = [f"{game}: microseconds of a step, by games a warp"]
    for who, by in found["step_us"].items():
        lines.append(f"  {who:10} " + "  ".join(f"{per}: {us}" for per, us in by.items()))
    for per, one in found["clocks"].items():
        lines.append(
            f"  {per} games a warp: {one['moves_per_decision']} moves per decision, the longest of "
            f"a warp {one['longest_of_a_warp']}; cycles per step {one['cycles_per_step']:,}, "
            f"slowest {one['slowest_step']:,}"
        )
        for name, kind in one["kinds"].items():
            lines.append(
                f"    {name:18} {kind['count']:>9,} times, {kind['mean']:>7,} cycles, "
                f"longest {kind['longest']:>9,}"
            )
    return lines


if __name__ == "__main__":
    main()
