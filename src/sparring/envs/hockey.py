"""Laser hockey with the interface of the original package: change one import and go on.

`import sparring.envs.hockey as h_env` takes the place of `import hockey.hockey_env as h_env`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.envs.extras import not_installed
from sparring.errors import ConfigError, IllegalActionError
from sparring.games.laser_hockey import (
    MAX_KEEP_STEPS,
    TIME_LIMIT,
    HockeyPosition,
    RigidBody,
    read,
    set_position,
)
from sparring.games.rules import Rules
from sparring.games.state import State, new_state

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.error import ResetNeeded
except ModuleNotFoundError as missing:
    raise not_installed("gymnasium", missing) from missing

Obs = npt.NDArray[np.float32]
Info = dict[str, Any]

RINK_LENGTH = 250 / 60
"""Meters; the original measures closeness and speeds by them."""
PUCK_SPEED = 25.0
GOAL = 10.0
"""What a goal pays."""
FARTHEST = 50.0
"""Meters from the center; outside the rink, where the original loses a puck now and then."""


class Mode(Enum):
    """How an episode starts."""

    NORMAL = 0
    TRAIN_SHOOTING = 1
    TRAIN_DEFENSE = 2


def mode_of(given: Mode | str | int) -> Mode:
    """Return a mode given as such, by name or by number."""
    if isinstance(given, Mode):
        return given
    if isinstance(given, str):
        if given in Mode.__members__:
            return Mode[given]
        raise ConfigError(f"mode={given!r} is unknown; there are: {', '.join(Mode.__members__)}")
    if isinstance(given, int) and not isinstance(given, bool):
        return Mode(given)
    raise TypeError(f"mode={given!r} is neither a Mode nor its name or number")


@cache
def rules_from(mode: str, serve: str, flags: tuple[tuple[str, Any], ...]) -> Rules:
    """Return the rules of one way to start an episode."""
    return Rules("laser_hockey", {"mode": mode, "serve": serve, **dict(flags)})


class HockeyEnv(gymnasium.Env[Obs, npt.NDArray[Any]]):
    """Both players in one environment: the action holds both, the observation is player one's.

    What differs from the original is in the keywords of the constructor, and on the game's page.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 50}  # noqa: RUF012

    def __init__(
        self,
        keep_mode: bool = True,
        mode: Mode | str | int = Mode.NORMAL,
        verbose: bool = False,
        *,
        timeout_as_terminated: bool = False,
        clear_keep_on_reset: bool = True,
        safe_spawn: bool = True,
        profile: str = "EXACT",
        render_mode: str | None = None,
    ) -> None:
        """Make the game and start it, player one serving.

        keep_mode: rackets catch the puck and shoot it.
        timeout_as_terminated: True reports a time-out as the original does.
        clear_keep_on_reset, safe_spawn: False repeats two mistakes of the original.
        profile: EXACT, or FAST for a little less accuracy.
        """
        self.keep_mode = bool(keep_mode)
        self.verbose = verbose
        self.mode = mode_of(mode)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ConfigError(
                f"render_mode={render_mode!r} is unknown; there is 'ansi', and `sparring render` "
                "makes films"
            )
        self.render_mode = render_mode
        self._clear_keep = clear_keep_on_reset
        self._flags = (
            ("keep_mode", int(self.keep_mode)),
            ("timeout_as_terminated", int(timeout_as_terminated)),
            ("safe_spawn", int(safe_spawn)),
            ("profile", profile),
        )
        self.num_actions = 4 if self.keep_mode else 3
        self.observation_space = spaces.Box(-np.inf, np.inf, (18 if self.keep_mode else 16,))
        self.action_space = spaces.Box(-1.0, 1.0, (2 * self.num_actions,), np.float32)
        self.discrete_action_space = spaces.Discrete(8 if self.keep_mode else 7)
        self.one_starts = True
        self._start()

    @property
    def time(self) -> int:
        """Steps of this episode so far."""
        return int(self._state.fields()["time"][0])

    @property
    def max_timesteps(self) -> int:
        """The time limit; the step after it is the last one."""
        return TIME_LIMIT[self.mode.name]

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self._state.over

    @property
    def winner(self) -> int:
        """1 if player one scored, -1 if player two did, 0 so far."""
        return int(self._state.scores[0])

    def reset(
        self,
        one_starting: bool | None = None,
        mode: Mode | str | int | None = None,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Obs, Info]:
        """Start an episode. Without `one_starting` the players serve in turn.

        seed: fixes this episode, who serves included, and, because the draws go on from it, those
            that follow.
        """
        super().reset(seed=seed)
        if mode is not None:
            self.mode = mode_of(mode)
        if seed is not None:
            self.one_starts = bool(self.np_random.integers(2))
        if self.mode is Mode.NORMAL:
            self.one_starts = not self.one_starts if one_starting is None else bool(one_starting)
        self._start()
        return self._state.observe(0), self._info(0)

    def step(self, action: npt.ArrayLike) -> tuple[Obs, float, bool, bool, Info]:
        """Play one joint action: player one's numbers, then player two's."""
        self._state.apply(self._both(action))
        return (
            self._state.observe(0),
            float(self._state.rewards[0]),
            self._state.terminated,
            self._state.truncated,
            self._info(0),
        )

    def obs_agent_two(self) -> Obs:
        """Return what player two sees, from his own side."""
        return self._state.observe(1)

    def get_info(self) -> Info:
        """Return the info of player one."""
        return self._info(0)

    def get_info_agent_two(self) -> Info:
        """Return the info from player two's side."""
        return self._info(1)

    def get_reward(self, info: Info) -> float:
        """Return player one's reward for an info."""
        goal = GOAL * info["winner"] if self.done else 0.0
        return float(goal + info["reward_closeness_to_puck"])

    def get_reward_agent_two(self, info_two: Info) -> float:
        """Return player two's reward for an info of his."""
        return self.get_reward(info_two)

    def discrete_to_continous_action(self, discrete_action: int) -> npt.NDArray[np.float32]:
        """Return the numbers of one player for a discrete action (in the original's spelling)."""
        code, last = int(discrete_action), int(self.discrete_action_space.n) - 1
        if code != discrete_action or not 0 <= code <= last:
            raise IllegalActionError(f"discrete action {discrete_action} is outside 0..{last}")
        action = np.zeros(self.num_actions, np.float32)
        if code == 7:
            action[3] = 1.0
        elif code:
            action[(code - 1) // 2] = -1.0 if code % 2 else 1.0
        return action

    discrete_to_continuous_action = discrete_to_continous_action

    def set_state(self, state: npt.ArrayLike) -> None:
        """Continue from an observation of player one.

        The puck's spin and what it touches are not in it and are forgotten; the time and the shot
        that a TRAIN_DEFENSE episode begins with stay.
        """
        seen = np.asarray(state, np.float64)
        if seen.shape != self.observation_space.shape:
            raise ConfigError(f"a state has shape {self.observation_space.shape}, not {seen.shape}")
        if not np.isfinite(seen).all():
            raise ConfigError("a state needs finite numbers")
        before = read(self._state)
        places = np.abs(seen[[0, 1, 6, 7, 12, 13]])
        if places.max() > FARTHEST:
            raise ConfigError(
                f"a state has a place {places.max():g} m from the center of the rink; "
                f"{FARTHEST:g} m is the farthest"
            )
        keep = (float(seen[16]), float(seen[17])) if self.keep_mode else (0.0, 0.0)
        if not all(count.is_integer() and 0 <= count <= MAX_KEEP_STEPS for count in keep):
            raise ConfigError(
                f"keep counters are whole numbers from 0 to {MAX_KEEP_STEPS}, "
                f"not {keep[0]:g} and {keep[1]:g}"
            )
        x, y, vx, vy = (float(number) for number in seen[12:16])
        set_position(
            self._state,
            HockeyPosition(
                left=RigidBody(*(float(number) for number in seen[0:6])),
                right=RigidBody(*(float(number) for number in seen[6:12])),
                puck=RigidBody(x, y, 0.0, vx, vy),
                keep=(int(keep[0]), int(keep[1])),
                kick=before.kick,
                time=min(before.time, self.max_timesteps),
                mode=self.mode.name,
                server=before.server,
                phase=before.phase,
            ),
        )

    def render(self) -> Any:
        """Return the rink as text, with render_mode="ansi"."""
        return str(self._state) if self.render_mode == "ansi" else None

    def _start(self) -> None:
        """Draw the start of an episode."""
        kept = (0, 0) if self._clear_keep or not hasattr(self, "_state") else self._kept()
        serve = "LEFT" if self.one_starts else "RIGHT"
        rules = rules_from(self.mode.name, serve, self._flags)
        drawn = int(self.np_random.integers(2**63))
        self._state: State = new_state(rules, seed=drawn)
        if any(kept):
            set_position(self._state, replace(read(self._state), keep=kept))

    def _kept(self) -> tuple[int, int]:
        left, right = self._state.fields()["keep"]
        return int(left), int(right)

    def _both(self, action: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Check a joint action and return it as the game takes it."""
        if self._state.over:
            raise ResetNeeded("the episode is over; call reset()")
        given = np.asarray(action, np.float64)
        if given.shape != (2 * self.num_actions,):
            raise IllegalActionError(
                f"the action has shape {given.shape}, need {(2 * self.num_actions,)}: "
                f"{self.num_actions} numbers for each player"
            )
        if np.isnan(given).any():
            raise IllegalActionError(f"the action has a NaN at {int(np.isnan(given).argmax())}")
        both = np.zeros((2, 4), np.float32)
        both[:, : self.num_actions] = np.clip(given, -1, 1).reshape(2, -1)
        return both

    def _info(self, seat: int) -> Info:
        """Return the original's info, from the side of a player."""
        seen = self._state.observe(seat).astype(np.float64)
        x, vx = seen[12], seen[14]
        limit = self.max_timesteps
        closeness = 0.0
        if x < 0 and vx <= 0:
            farthest = RINK_LENGTH * limit / 2
            closeness = -30.0 / farthest * float(np.hypot(*(seen[0:2] - seen[12:14])))
        touch = float(self.keep_mode and seen[16] == 15)
        return {
            "winner": self.winner if seat == 0 else -self.winner,
            "reward_closeness_to_puck": closeness,
            "reward_touch_puck": touch,
            "reward_puck_direction": float(vx / (PUCK_SPEED * limit)),
        }


class BasicOpponent:
    """The original's scripted player. It sees an observation from its own side."""

    def __init__(
        self, weak: bool = True, keep_mode: bool = True, *, seed: int | None = None
    ) -> None:
        """Make a player; the same seed gives the same player."""
        self.weak = weak
        self.keep_mode = keep_mode
        self._rng = np.random.default_rng(seed)
        self.phase = float(self._rng.uniform(0, np.pi))

    def act(
        self, obs: npt.ArrayLike | Sequence[float], verbose: bool = False
    ) -> npt.NDArray[np.float64]:
        """Return the action for an observation; the racket goes on swinging with every call."""
        self.phase += float(self._rng.uniform(0, 0.2))
        return basic_action(
            np.asarray(obs, np.float64), self.phase, weak=self.weak, keep_mode=self.keep_mode
        )


def basic_action(
    seen: npt.NDArray[np.float64], phase: float, *, weak: bool, keep_mode: bool
) -> npt.NDArray[np.float64]:
    """Return what the scripted player does at a phase of its swing."""
    gain, brake = (0.5 if weak else 10.0), 0.5
    own, velocity = seen[0:3], seen[3:6]
    puck, puck_velocity = seen[12:14], seen[14:16]
    target = np.array([-3.5, 0.0, np.pi / 3 * np.sin(phase)])
    if puck_velocity[0] < 0.5:
        target[1] = puck[1]
        if own[0] < puck[0] and abs(own[1] - puck[1]) < 0.5:
            lead = 0.1 * puck_velocity[1] * np.hypot(*(own[:2] - puck))
            target[:2] = puck[0] + 0.2, puck[1] + lead
    error = target - own
    with np.errstate(divide="ignore", invalid="ignore"):
        brakes = np.abs(error / (velocity + 0.01)) < [0.1, 0.1, 1.0]
    push = np.clip(error * [gain, gain / 5, gain / 2] - brakes * brake * velocity, -1, 1)
    if not keep_mode:
        return push
    return np.append(push, float(0 < seen[16] < 7))


class HockeyEnv_BasicOpponent(HockeyEnv):  # noqa: N801
    """Player one against the scripted player."""

    def __init__(
        self,
        mode: Mode | str | int = Mode.NORMAL,
        weak_opponent: bool = False,
        keep_mode: bool = True,
        **more: Any,
    ) -> None:
        """Make the game; `more` goes to `HockeyEnv`."""
        super().__init__(mode=mode, keep_mode=keep_mode, **more)
        self.opponent = BasicOpponent(weak=weak_opponent, keep_mode=keep_mode)
        self.action_space = spaces.Box(-1.0, 1.0, (self.num_actions,), np.float32)

    def reset(
        self,
        one_starting: bool | None = None,
        mode: Mode | str | int | None = None,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Obs, Info]:
        """Start an episode; a seed also fixes the opponent."""
        if seed is not None:
            weak = self.opponent.weak
            self.opponent = BasicOpponent(weak=weak, keep_mode=self.keep_mode, seed=seed)
        return super().reset(one_starting, mode, seed, options)

    def step(self, action: npt.ArrayLike) -> tuple[Obs, float, bool, bool, Info]:
        """Play player one's action; the opponent answers to what it saw before it."""
        given = np.asarray(action, np.float64)
        if given.shape != self.action_space.shape:
            raise IllegalActionError(
                f"the action has shape {given.shape}, need {self.action_space.shape}"
            )
        self._both(np.concatenate([given, given]))  # what is refused leaves the opponent alone
        return super().step(np.concatenate([given, self.opponent.act(self.obs_agent_two())]))


for _name, _class in (("Hockey", "HockeyEnv"), ("Hockey-One", "HockeyEnv_BasicOpponent")):
    if f"sparring/{_name}-v0" not in gymnasium.registry:
        gymnasium.register(f"sparring/{_name}-v0", entry_point=f"{__name__}:{_class}")
