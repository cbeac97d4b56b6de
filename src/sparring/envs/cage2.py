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
from sparring.errors import ConfigError, IllegalActionError
from sparring.games.cage2 import HOSTS, LEVELS, Cage2Position, levels_of, read
from sparring.games.rules import Rules
from sparring.games.state import State, new_state

try:
    from gymnasium.spaces import Box, Discrete

    from sparring.envs.spaces import observation_space
except ModuleNotFoundError as missing:
    raise not_installed("gymnasium", missing) from missing

Vector = npt.NDArray[np.int64] | npt.NDArray[np.float32]
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


def named(name: str) -> Action:
    """Return the action that a name stands for."""
    family, _, target = name.partition(" ")
    return Action(family, target)


def red_of(agents: Mapping[str, Any]) -> str:
    """Return who attacks; nobody does where nobody is named."""
    for name in agents:
        if name != "Red":
            raise ConfigError(f"agents has {name!r}; only 'Red' can be chosen here")
    red = agents.get("Red", SleepAgent)
    if not hasattr(red, "red"):
        known = "B_lineAgent, RedMeanderAgent or SleepAgent of sparring.envs.cage2"
        raise ConfigError(f"red agent {red!r} is not one of {known}")
    return str(red.red)


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
        flags = {"max_steps": UNLIMITED, "red": red_of(agents or {}), **(config or {})}
        if "Red" in (agents or {}) and "red" in (config or {}):
            raise ConfigError("agents and config both name a red; leave one of them out")
        self.rules = Rules("cage2", flags)
        self._whole = all(f.divisor == 1 and f.dtype != "float32" for f in self.rules.features)
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
        if isinstance(action, bool | np.bool_):
            raise IllegalActionError(f"cage2 needs a numbered action, got {action!r}")
        self._state.apply(np.asarray(0 if action is None else action))
        return round(float(self._state.rewards[0]), 1)

    def vector(self) -> Vector:
        """Return what blue sees: whole numbers, as the original has them, if all of them are."""
        seen = self._state.observe(0)
        return seen.astype(np.int64) if self._whole else seen

    @property
    def position(self) -> Cage2Position:
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
        return {"Blue": named(at.blue_action), "Red": red}

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
        rules = self.env.rules
        self.possible_actions = [named(rules.action_name(a)) for a in range(rules.actions)]
        self.action_space = Discrete(rules.actions)
        self.observation_space: Any = Box(-1.0, 1.0, (4 * len(HOSTS),), np.float32)
        if len(rules.features) != 4 * len(HOSTS):  # more than the original's numbers
            self.observation_space = observation_space(rules)

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
