"""Games stepped together on a GPU, compiled from the same headers as on a CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sparring.errors import ConfigError, IllegalActionError, SparringError
from sparring.games.goals import check_goals
from sparring.games.rules import Rewards, Rules, rules_for
from sparring.games.saved import add_header, split_header
from sparring.games.seeds import seed_bits
from sparring.kernels import build
from sparring.kernels.views import KernelView
from sparring.machine import check_memory_budget
from sparring.pools.cuda.actions import as_given, audit_copies, why_frozen
from sparring.pools.cuda.batch import CudaBatch
from sparring.pools.cuda.counts import CountsOnDevice
from sparring.pools.cuda.memory import make_memories
from sparring.pools.cuda.sizes import MASK_BYTES, STAGE_BYTES, check_games, sizes_of, warps_for
from sparring.pools.cuda.sources import game_source
from sparring.pools.cuda.starts import DeviceStarts
from sparring.pools.cuda.states import put_body
from sparring.pools.limits import bytes_per_game, check_memory, memory_entry
from sparring.pools.lineups import Lineup, Mixes, PlayerId
from sparring.pools.native import Pool
from sparring.pools.starts import Start

BLOCK = 32
"""Threads per block, one warp; each plays one game or none."""
UNITS = 2
"""Parts of the source that are compiled in parallel."""
SOURCE = """
#include "games/{name}.hpp"
#define SPARRING_GAME ::sparring::{name}::Game
#include "cuda/pool.cuh"
"""


class CudaPool(CountsOnDevice):
    """N games of one kind on a GPU, bit for bit those of a CPU pool.

    An illegal action freezes its game; `check` raises the error. It is called wherever the pool
    has to wait for the device anyway (`state`, `load_state`, `reset`).
    """

    can = frozenset({"clone", "exact state", "repeatable order"})
    slots = 1

    def __init__(
        self,
        game: str | Rules,
        num_games: int,
        *,
        seed: int = 0,
        seeds: Sequence[int] = (),
        config: Mapping[str, Any] | None = None,
        lineups: Sequence[Lineup] | None = None,
        mixes: Sequence[str] = (),
        rewards: Rewards | None = None,
        first_game: int = 0,
        observe: bool = True,
        memory: int = 0,
        records: bool = False,
        starts: Sequence[Start] = (),
        device: str = "cuda",
        count: bool = True,
        stage_bytes: int = STAGE_BYTES,
        per_warp: int | None = None,
    ) -> None:
        """Make the games; `reset` starts them.

        seeds: several pools in one, of num_games / len(seeds) games each, which play what separate
            pools with these seeds would play.
        mixes: see `set_lineups`.
        observe: False leaves observations and masks out, for measuring.
        memory: bytes per (game, seat) outside the game, a multiple of 16.
        records: batches contain results of goals, in games that have them.
        starts: start positions, see `set_starts`.
        count: False leaves the game's counters out, for measuring.
        stage_bytes: shared memory for 32 games and their rows; games that need more are played
            in global memory, which is slower.
        per_warp: games per warp, up to 32; None: the default of the game's header.
        """
        self.rules = rules_for(game, config)
        self.device = torch.device(device)
        if self.device.type != "cuda" or not torch.cuda.is_available():
            raise ConfigError(f"device={device!r}: this pool needs a GPU that torch can see")
        self.seeds = tuple(seeds) or (seed,)
        check_games(num_games, len(self.seeds), per_warp)
        check_memory(memory)
        self.records = records and check_goals(self.rules)
        check_memory_budget(
            "num_games",
            num_games,
            bytes_per_game(self.rules, observe=observe, memory=memory),
            f"these games of {self.rules.name} on the GPU",
            free=torch.cuda.mem_get_info(self.device)[0],
        )
        self.num_games, self.each = int(num_games), int(num_games) // len(self.seeds)
        self.first_game, self._observe, self._started = int(first_game), observe, False
        # A CPU pool of one game per seed writes flags, line-ups and weights for the kernels.
        self._hosts = [
            Pool(
                self.rules,
                1,
                seed=one,
                threads=1,
                lineups=lineups,
                mixes=mixes,
                rewards=rewards,
                first_game=first_game,
                observe=False,
            )
            for one in self.seeds
        ]
        native = self._hosts[0]._native
        side_bytes = native.extra.size
        sizes_defined = sizes_of(self.rules, self._hosts[0], memory=memory, stage_bytes=stage_bytes)
        source, defines, linking = game_source(self.rules, SOURCE, sizes_defined)
        self._kernels = build(
            source,
            defines,
            **linking,
            exact=True,
            device=self.device,
            units=UNITS,
            what=self.rules.name,
        )
        sizes = torch.zeros(5, dtype=torch.int32, device=self.device)
        self._kernels.sizes(1, 1, sizes)
        table, setting, legal, self._staged, default_per_warp = sizes.tolist()
        if (table, setting) != (native.envs.shape[1], native.setting.size):
            raise SparringError("GPU and CPU lay a game out differently; please report this")
        with torch.device(self.device):
            self.tables = torch.zeros(self.num_games, table, dtype=torch.uint8)
            self.side = torch.zeros(self.num_games, side_bytes, dtype=torch.uint8)
            self.memories = make_memories(self.num_games * self.rules.seats, memory)
            self.memory = self.memories[:-1].view(self.num_games, self.rules.seats, memory)
            """[N, seats, memory_bytes], appended to a seat's next row. Cleared at its game's
            reset."""
            self.settings = torch.zeros(len(self.seeds), setting, dtype=torch.uint8)
            self.frozen = torch.zeros(self.num_games, dtype=torch.uint8)
            self.refused = self._action_array()
            self._sampled = self._action_array()
        shape = self.num_games, self.row_bytes, legal // 8
        self._batch = CudaBatch(self.rules, *shape, self.device, records=records)
        self._counting = self._make_counts(self.rules, len(self.seeds), self.device, on=count)
        self._make_views()
        self.spread(per_warp or default_per_warp)
        self._starts = [DeviceStarts() for _ in self.seeds]
        self.set_starts(starts)

    def spread(self, per_warp: int) -> None:
        """Set the number of games per warp, which does not change the games."""
        self.per_warp = per_warp
        for kernel in (self._kernels.step, self._kernels.open_rows):
            kernel.reserve(self._staged * self.per_warp)
        self._games = self.view(
            "GamesView",
            envs=self.tables,
            settings=self.settings,
            games=self.num_games,
            each=self.each,
            per_warp=self.per_warp,
            extra=self.side,
            memory=self.memory,
            **self._counting,
        )

    def _make_views(self) -> None:
        """Describe the pool's arrays to the kernels."""
        view, batch = self.view, self._batch
        unseen = {} if self._observe else {"obs": None}
        self._rows = view("RowsView", **batch.rows() | unseen)
        self._outcome = view("OutcomeView", **batch.outcome())
        masked = {} if self._observe else {"legal": None}
        self._finals = view("FinalsView", **batch.finals | unseen | masked)
        self._no_finals = view("FinalsView", **dict.fromkeys(batch.finals))
        nothing = dict.fromkeys(("earned", "cut_obs", "cut_at", "cut_count", "score"))
        self._no_met = view("ResultsView", met=None, policies=0, players=0, each=1)
        self._no_ends = view("EndsView", **nothing, layers=0, step=0, learner=0, met=self._no_met)

    def view(self, struct: str, /, **fields: Any) -> KernelView:
        """Fill a view of csrc/cuda/pool.cuh by name."""
        return self._kernels.view(struct, **fields)

    def names(self, struct: str) -> list[str]:
        """Field names of a structure of csrc/cuda/pool.cuh, in order."""
        return self._kernels.names(struct)

    def _answers(self, legal: Tensor, action: Tensor) -> KernelView:
        return self.view(
            "ActionsView", legal=legal, action=action, frozen=self.frozen, rejected=self.refused
        )

    def _action_array(self) -> Tensor:
        rows = self.num_games * self.rules.rows
        if self.rules.box:
            return torch.zeros(rows, self.rules.box, dtype=torch.float32, device=self.device)
        return torch.zeros(rows, dtype=torch.int32, device=self.device)

    def _upload(self) -> None:
        """Copy seeds, flags, line-ups and weights to the device; captured graphs read them, too."""
        raw = np.stack([host._native.setting for host in self._hosts])
        for setting, starts in zip(raw, self._starts, strict=True):
            starts.write(setting, self._hosts[0]._native.starts_offset)
        self.settings.copy_(torch.from_numpy(raw))

    @property
    def seed(self) -> int:
        """Seed of the games, the first if there are several."""
        return self._hosts[0].seed

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory per (game, seat), appended to the observation in every row."""
        return int(self.memory.shape[2])

    @property
    def row_bytes(self) -> int:
        """Bytes of a row: observation and memory."""
        return self.rules.obs_bytes + self.memory_bytes

    def batch(self, slot: int | None = None) -> CudaBatch:
        """Return the current batch without stepping."""
        return self._batch

    def reset(self, seed: int | None = None) -> CudaBatch:
        """Reset every game; with a seed, to the games of that seed."""
        if seed is not None:
            if len(self.seeds) > 1:
                raise ConfigError("a pool of several seeds cannot be given one; make a new pool")
            self.seeds = (seed,)
            self._hosts[0]._native.reseed(seed_bits(seed))
            self.tables.zero_()
            self._upload()
        self._hosts[0].reset()  # raises if no policy ever decides, which would freeze all games
        self._open_rows(restart=True)
        return self._batch

    def _open_rows(self, *, restart: bool) -> None:
        self._kernels.open_rows(
            *(self._warps(), BLOCK),
            *(self._games, int(restart), self.frozen, self._rows, self._outcome),
        )
        self._expand_mask()
        self._started = True

    def step(self, action: Any) -> CudaBatch:
        """Step all games with one action per row, without waiting for the device."""
        given = as_given(action, self.num_games * self.rules.rows, self.rules.box, self.device)
        if not self._started:
            raise IllegalActionError("no game has started; call reset() first")
        answers = self._answers(self._batch.legal, given)
        self._kernels.step(
            *(self._warps(), BLOCK, self._games, answers),
            *(self._rows, self._outcome, self._finals, self._no_ends),
        )
        self._expand_mask()
        return self._batch

    def step_into(
        self,
        *,
        legal: Tensor,
        action: Tensor,
        rows: Mapping[str, Tensor],
        outcome: Mapping[str, Tensor],
        ends: Mapping[str, Tensor | None],
        step: int,
        learner: int,
        met: Tensor | None = None,
        policies: int = 0,
        final_legal: Tensor | None = None,
    ) -> None:
        """Step all games and write into a learner's arrays; may be captured in a graph.

        legal, action: of the current rows. rows, outcome: arrays of the next decisions, named as
            those of a batch. ends: games that end; `EndsView` in csrc/cuda/pool.cuh.
        met: [members, players, 3], counts of games that the learner won, drew and lost; the first
            `policies` players are policies, the others bots.
        final_legal: [games, seats, words], legal actions of seats that are truncated.
        """
        counted = self._no_met
        if met is not None:
            counted = self.view(
                "ResultsView", met=met, policies=policies, players=met.shape[1], each=self.each
            )
        cuts, brought = ends["cut_at"], {"goal_result": None, **outcome}
        layers = len(cuts) if cuts is not None else 0
        finals = self._no_finals
        if final_legal is not None:
            kept = dict.fromkeys(self._batch.finals) | {"legal": final_legal}
            finals = self.view("FinalsView", **kept)
        self._kernels.step(
            *(self._warps(), BLOCK, self._games, self._answers(legal, action)),
            *(self.view("RowsView", **rows), self.view("OutcomeView", **brought), finals),
            self.view("EndsView", **ends, layers=layers, step=step, learner=learner, met=counted),
        )

    def sample_actions(self) -> Tensor:
        """Draw uniform legal actions. The array is reused by the next call."""
        batch = self._batch
        self._kernels.sample_actions(
            self._blocks(), BLOCK, self._games, batch.legal, batch.policy, self._sampled
        )
        return self._sampled

    def check(self, member: int | None = None) -> None:
        """Wait for the device and raise the first illegal action.

        member: only in the games of one seed.
        """
        games = slice(0, self.num_games) if member is None else self._games_of(member)
        if len(frozen := self.frozen[games].nonzero()):
            game = games.start + int(frozen[0])
            where = self.first_game + game % self.each, game * self.rules.rows
            raise why_frozen(self.rules, where, int(self.frozen[game]), self._batch, self.refused)

    def rules_of(self, member: int) -> Rules:
        """Rules of the games of one seed."""
        return self._hosts[member].rules

    def _of(self, member: int | None) -> list[Pool]:
        """CPU pools of one seed, or of all."""
        return self._hosts if member is None else [self._hosts[member]]

    @property
    def mixes(self) -> tuple[str, ...]:
        """Names of the mixes that `set_mixes` can fill, of all seeds."""
        return tuple(dict.fromkeys(name for host in self._hosts for name in host.mixes))

    def set_lineups(
        self, lineups: Sequence[Lineup], mixes: Sequence[str] = (), member: int | None = None
    ) -> None:
        """Set the line-ups; every game draws one at its next reset.

        mixes: names of further mixes that `set_mixes` can fill. Mixes that are named before and
            after keep their players.
        member: only in the games of one seed, here and below.
        """
        for host in self._of(member):
            host.set_lineups(lineups, mixes)
        self._upload()

    def set_mixes(self, mixes: Mixes, member: int | None = None) -> None:
        """Set the players of mixes; a game draws from them when it starts."""
        for host in self._of(member):
            host.set_mixes(mixes)
        self._upload()

    def seated(self, policies: int, member: int = 0) -> npt.NDArray[np.int64]:
        """Count the seats that each policy id below `policies` holds in the running games."""
        seats = torch.zeros(len(self.seeds), policies, dtype=torch.int32, device=self.device)
        self._kernels.count_seats(self._blocks(), BLOCK, self._games, policies, seats)
        return seats[member].cpu().numpy().astype(np.int64)

    def set_rewards(self, rewards: Rewards, member: int | None = None) -> None:
        """Set the weights of reward parts, from the next step on."""
        for host in self._of(member):
            host.set_rewards(rewards)
        self._upload()

    def set_config(self, *, member: int | None = None, **flags: Any) -> None:
        """Set flags that may change while games run; a game follows at its next reset."""
        for host in self._of(member):
            host.set_config(**flags)
        self.rules = self._hosts[0].rules
        self._upload()

    def set_starts(self, starts: Sequence[Start], member: int | None = None) -> None:
        """Set the start positions; every game draws one at its next reset. []: the default.

        member: only in the games of one seed.
        """
        packed = self._hosts[0].pack_starts(starts)
        there = DeviceStarts(packed, self.device)
        for chosen in range(len(self.seeds)) if member is None else [member]:
            self._hosts[chosen].take_starts(packed)
            self._starts[chosen] = there
        self._upload()

    @property
    def policies(self) -> frozenset[int]:
        """Policy ids that may be seated."""
        return frozenset().union(*map(self.policies_of, range(len(self._hosts))))

    def policies_of(self, member: int) -> frozenset[int]:
        """Policy ids in the games of one seed."""
        return self._hosts[member].policies

    def player_id(self, player: PlayerId) -> int:
        """Return a player's number in `policy` arrays."""
        return self._hosts[0].player_id(player)

    def player_name(self, player: int) -> str:
        """Return the bot's name, or "policy K"."""
        return self._hosts[0].player_name(player)

    def state(self, member: int = 0) -> bytes:
        """Return all games (of one seed) in the format of a CPU pool's `state`."""
        self.check(member)
        if not self._started:
            raise IllegalActionError("no game has started; call reset() first")
        games = self._games_of(member)
        arrays = (self.tables, self.side, self.memory)
        body = b"".join(array[games].cpu().numpy().tobytes() for array in arrays)
        more = {**self._facts(member), **memory_entry(self.memory_bytes)}
        return add_header(self.rules_of(member), more, body)

    def _facts(self, member: int) -> dict[str, int]:
        """Header of a saved state, in the order of a CPU pool's."""
        counts = {"games": self.each, "first_game": self.first_game}
        return {**counts, "seed": self._hosts[member].seed, "table": int(self.tables.shape[1])}

    def load_state(self, raw: bytes, member: int = 0) -> CudaBatch:
        """Continue from `state()` of a pool of the same game, configuration and size."""
        header, body = split_header(raw)
        rules = self.rules_of(member)
        mine = {"game": rules.name, "config": rules.config, **self._facts(member)}
        header.check_equal(mine | {"seed": header.seed(), "memory": self.memory_bytes})
        header.check_version(rules)
        host, games = self._hosts[member]._native, self._games_of(member)
        put_body(host, body, [array[games] for array in (self.tables, self.side, self.memory)])
        host.reseed(seed_bits(header.seed()))
        self._upload()
        self._open_rows(restart=False)
        return self._batch

    def audit(self) -> str:
        """Return an error in any of the games, "" if there is none."""
        states = ((self.rules_of(member), self.state(member)) for member in range(len(self.seeds)))
        return audit_copies(states, self.each, first_game=self.first_game, memory=self.memory_bytes)

    def _games_of(self, member: int) -> slice:
        return slice(member * self.each, (member + 1) * self.each)

    def _blocks(self) -> int:
        return -(-self.num_games // BLOCK)

    def _warps(self) -> int:
        return len(self.seeds) * warps_for(self.each, self.per_warp)

    def _expand_mask(self) -> None:
        mask = self._batch.mask
        if self._observe and mask.numel():
            blocks = -(-mask.numel() // (MASK_BYTES * 256))
            self._kernels.expand_masks(blocks, 256, self._batch.legal, mask.numel(), mask)
