"""CAGE-2 behind the interface of its original simulator, so that published agents run unchanged.

An agent or an evaluation script of the challenge needs other imports and nothing else:

    from sparring.envs.cage2 import B_lineAgent, ChallengeWrapper, CybORG

    cyborg = CybORG("Scenario2", "sim", agents={"Red": B_lineAgent})
    env = ChallengeWrapper(env=cyborg, agent_name="Blue")
    observation = env.reset()
    observation, reward, done, info = env.step(0)

Addresses are not simulated: where the original prints one, a host's or subnet's name stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sparring.envs.extras import not_installed
from sparring.errors import ConfigError
from sparring.games.cage2 import ACTIONS, HOSTS, LEVELS, Position, levels_of, read
from sparring.games.rules import Rules
from sparring.games.state import State, new_state

try:
    from gymnasium.spaces import Box, Discrete
except ModuleNotFoundError as missing:
    raise not_installed("gymnasium", missing) from missing

Vector = npt.NDArray[np.int64]
UNLIMITED = 65535
"""Steps after which an episode is over in any case; the original never ends one."""
RED_NAMES = {
    "sweep": "DiscoverRemoteSystems",
    "scan": "DiscoverNetworkServices",
    "exploit": "ExploitRemoteService",
    "escalate": "PrivilegeEscalate",
    "impact": "Impact",
    "sleep": "Sleep",
}
"""What the original calls red's actions."""


class B_lineAgent:  # noqa: N801
    """Stands for red B_line in `CybORG(agents={"Red": B_lineAgent})`."""

    red = "B_LINE"


class RedMeanderAgent:
    """Stands for red Meander."""

    red = "MEANDER"


class SleepAgent:
    """Stands for a red that sleeps."""

    red = "SLEEP"


@dataclass(frozen=True)
class Action:
    """An action as the original prints it, for example "Restore User1"."""

    name: str
    target: str = ""

    @property
    def hostname(self) -> str:
        """The host it is about, "" if there is none."""
        return self.target if self.target in HOSTS else ""

    def __str__(self) -> str:
        return f"{self.name} {self.target}".strip()


POSSIBLE_ACTIONS = tuple(Action(*name.split(" ")) for name in ACTIONS)


class CybORG:
    """The simulator: one episode after the other of blue against a scripted red."""

    def __init__(
        self,
        scenario_file: str = "Scenario2",
        environment: str = "sim",
        agents: Mapping[str, Any] | None = None,
        *,
        config: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        """Make the simulator; `reset` starts an episode.

        scenario_file: only Scenario2 is there; a path to its file will do.
        agents: {"Red": B_lineAgent}, an instance or a class. Left out: a red that sleeps.
        config: flags of the game, for example {"preset": "CHALLENGE"}.
        seed: which episodes are played. None: others each time.
        """
        if "Scenario2" not in scenario_file:
            raise ConfigError(f"scenario {scenario_file!r}: only Scenario2 (CAGE-2) is there")
        if environment != "sim":
            raise ConfigError(f"environment {environment!r}: only 'sim' is there")
        red = (agents or {}).get("Red", SleepAgent)
        if not hasattr(red, "red"):
            known = "B_lineAgent, RedMeanderAgent or SleepAgent of sparring.envs.cage2"
            raise ConfigError(f"red agent {red!r} is not one of {known}")
        flags = {"red": red.red, **(config or {})}
        self.rules = Rules("cage2", {"max_steps": UNLIMITED, **flags})
        self.set_seed(seed)
        self._state = self._start()

    def _start(self) -> State:
        return new_state(self.rules, seed=int(self._seeds.integers(2**63)))

    def set_seed(self, seed: int | None) -> None:
        """Choose which episodes the next resets start."""
        self._seeds = np.random.default_rng(seed)

    def reset(self) -> Vector:
        """Start the next episode and return the observation."""
        self._state = self._start()
        return self.vector()

    def step(self, action: int | np.integer[Any] | None) -> float:
        """Play an action, None for Sleep, and return the reward."""
        self._state.apply(0 if action is None else int(action))
        return round(float(self._state.rewards[0]), 1)

    def vector(self) -> Vector:
        """Return what blue sees, as the original's numbers."""
        return self._state.observe(0).astype(np.int64)

    @property
    def position(self) -> Position:
        """The true position, for analysis."""
        return read(self._state)

    def get_last_action(self, agent: str) -> Action | None:
        """Return what an agent did in the last step, None before the first."""
        last = self._last_actions()
        if agent not in last:
            raise ConfigError(f"agent {agent!r} must be Blue or Red")
        return last[agent]

    def _last_actions(self) -> dict[str, Action | None]:
        at = self.position
        if at.step == 0:
            return {"Blue": None, "Red": None}
        red = Action(RED_NAMES[at.red_move.action], at.red_move.target)
        return {"Blue": POSSIBLE_ACTIONS[ACTIONS.index(at.blue_action)], "Red": red}

    def get_agent_state(self, agent: str) -> dict[str, Any]:
        """Return the true state by host ("True"): red's access, malware, decoys."""
        if agent != "True":
            raise ConfigError(f"get_agent_state({agent!r}): only 'True' is kept")
        at = self.position
        levels = levels_of(self._state.fields())
        state: dict[str, Any] = {
            host: {
                "System info": {"Hostname": host},
                "Sessions": [{"Agent": "Red", "Level": LEVELS[level]}] if level else [],
                "Malware": at.malware[h],
                "Decoy ports": list(at.decoys[h]),
            }
            for h, (host, level) in enumerate(zip(HOSTS, levels, strict=True))
        }
        state["success"] = at.red_move.succeeded
        return state

    def get_ip_map(self) -> dict[str, str]:
        """Return an address for every host; the original draws them, here they are names."""
        return {host: host for host in HOSTS}

    def get_rewards(self) -> dict[str, float]:
        """Return what the last step paid."""
        blue = round(float(self._state.rewards[0]), 1)
        restored = self.position.blue_action.startswith("Restore")
        return {"Blue": blue, "Red": round(-blue - restored, 1)}


class ChallengeWrapper:
    """Blue's view of the simulator: 52 numbers, 145 numbered actions, `done` after max_steps."""

    def __init__(
        self,
        agent_name: str = "Blue",
        env: CybORG | None = None,
        agent: Any = None,
        reward_threshold: float | None = None,
        max_steps: int | None = None,
    ) -> None:
        """Wrap a simulator. `agent` is accepted as the original does, and not used."""
        if agent_name.lower() != "blue":
            raise ConfigError(f"agent_name {agent_name!r}: only Blue can be played")
        self.env = env if env is not None else CybORG()
        self.agent_name = agent_name
        self.agent = agent
        self.reward_threshold = reward_threshold
        self.max_steps = max_steps
        self.step_counter = 0
        self.possible_actions = list(POSSIBLE_ACTIONS)
        self.action_space = Discrete(self.env.rules.actions)
        self.observation_space = Box(-1.0, 1.0, (len(self.env.vector()),), np.float32)

    def reset(self) -> Vector:
        """Start an episode and return the observation."""
        self.step_counter = 0
        return self.env.reset()

    def step(self, action: int | None = None) -> tuple[Vector, float, bool, dict[str, Any]]:
        """Play an action and return (observation, reward, done, info)."""
        reward = self.env.step(action)
        self.step_counter += 1
        done = self.max_steps is not None and self.step_counter >= self.max_steps
        return self.env.vector(), reward, done, {"reward": reward, "step": self.step_counter}

    def get_attr(self, attribute: str) -> Any:
        """Return an attribute or method of the wrapper or of the simulator below."""
        owner = self if hasattr(self, attribute) else self.env
        return getattr(owner, attribute)

    def get_observation(self, agent: str) -> Vector:
        """Return what Blue sees."""
        if agent != "Blue":
            raise ConfigError(f"get_observation({agent!r}): only Blue's is kept")
        return self.env.vector()

    def get_agent_state(self, agent: str) -> dict[str, Any]:
        """Return the true state ("True")."""
        return self.env.get_agent_state(agent)

    def get_action_space(self, agent: str | None = None) -> int:
        """Return how many actions there are."""
        return self.env.rules.actions

    def get_last_action(self, agent: str) -> Action | None:
        """Return what an agent did in the last step."""
        return self.env.get_last_action(agent)

    def get_ip_map(self) -> dict[str, str]:
        """Return an address for every host."""
        return self.env.get_ip_map()

    def get_rewards(self) -> dict[str, float]:
        """Return what the last step paid."""
        return self.env.get_rewards()
