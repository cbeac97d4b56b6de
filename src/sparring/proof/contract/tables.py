"""Drivers of PettingZoo environments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparring.proof.contract.drivers import (
    Actions,
    Driver,
    EnvRaisedError,
    StepResult,
    mask_of,
    parts_of,
)


class TableDriver(Driver):
    """Common to AECEnv and ParallelEnv."""

    def all_agents(self) -> Sequence[Any]:
        return tuple(self.env.possible_agents)

    def observation_space(self, who: Any) -> Any:
        return self.env.observation_space(who)

    def action_space(self, who: Any) -> Any:
        return self.env.action_space(who)

    def note_agents(self, result: StepResult) -> None:
        """Record unknown and duplicate agents."""
        agents = list(self.env.agents)
        strangers = [agent for agent in agents if agent not in self.env.possible_agents]
        if strangers:
            text = f"{strangers[0]} is in agents and not in possible_agents"
            result.fault("agents", text, "list all_agents in possible_agents")
        if len(set(agents)) < len(agents):
            text = f"agents {agents} has an agent twice"
            result.fault("agents", text, "remove agents that are out")

    def note_keys(self, result: StepResult, name: str, given: Any, agents: Sequence[Any]) -> None:
        """Record that a dictionary lacks agents."""
        if not isinstance(given, Mapping):
            raise EnvRaisedError(name, f"is {type(given).__name__}, need a dict by agent")
        missing = [agent for agent in agents if agent not in given]
        if missing:
            text = f"{name} has no {missing[0]!r}, which is in agents; its keys: {list(given)}"
            result.fault("agents", text, "give every agent in agents a value")


class TurnDriver(TableDriver):
    """A PettingZoo AECEnv."""

    kind = "pettingzoo AECEnv"

    def reset(self, seed: int | None) -> StepResult:
        self.restart(seed)
        result = StepResult()
        if not self.env.agents:
            result.fault("agents", "there are no agents after a reset", "fill agents")
        self._look(result)
        return result

    def read_position(self, answer: Any) -> StepResult:
        result = StepResult()
        self._look(result)
        return result

    def step(self, actions: Actions) -> StepResult:
        (agent,) = actions
        self.timed_step(actions[agent])
        result = StepResult(reward=dict(self.env.rewards))
        self._look(result)
        return result

    def _look(self, result: StepResult) -> None:
        """Step agents that are out with None, and read the next agent's observation."""
        env = self.env
        agents = list(env.agents)
        self.note_agents(result)
        for name in ("rewards", "terminations", "truncations", "infos", "_cumulative_rewards"):
            self.note_keys(result, name, getattr(env, name, None), agents)
        result.terminated = {a: env.terminations.get(a, False) for a in agents}
        result.truncated = {a: env.truncations.get(a, False) for a in agents}
        gone = [a for a in agents if result.terminated[a] or result.truncated[a]]
        result.last = {agent: self.call("observe", agent) for agent in gone}
        for _ in gone:
            agent = env.agent_selection
            if agent not in gone:
                break  # the others step when it is their turn
            self.call("step", None)
            if agent in env.agents:
                text = f"{agent} is out, stepped with None, and is still in agents"
                advice = (
                    "begin step() with: if the agent is out, return self._was_dead_step(action)"
                )
                result.fault("agents", text, advice)
                break
        left = [agent for agent in env.agents if agent not in gone]
        result.over = not left
        if left:
            self._ask(result, env.agent_selection, left)
        result.raw = (result.obs, result.last)

    def _ask(self, result: StepResult, agent: Any, left: Sequence[Any]) -> None:
        if agent not in left:
            who = ", ".join(map(str, left))
            raise EnvRaisedError("agent_selection", f"is {agent!r}, which is not in: {who}")
        obs = self.call("observe", agent)
        mask = mask_of(obs, self.env.infos.get(agent, {}))
        result.deciding, result.obs = (agent,), {agent: obs}
        result.mask = {} if mask is None else {agent: mask}


class ParallelDriver(TableDriver):
    """A PettingZoo ParallelEnv."""

    kind = "pettingzoo ParallelEnv"

    def reset(self, seed: int | None) -> StepResult:
        obs, infos = parts_of(self.restart(seed), 2, "reset()", "(observations, infos)")
        result = StepResult()
        agents = tuple(self.env.agents)
        if not agents:
            result.fault("agents", "there are no agents after a reset", "fill agents")
        self._look(result, obs, infos, agents)
        return result

    def read_position(self, answer: Any) -> StepResult:
        result = StepResult(deciding=tuple(self.env.agents))
        if answer is not None:
            obs, infos = answer
            self._look(result, obs, infos, result.deciding)
        return result

    def step(self, actions: Actions) -> StepResult:
        names = "(observations, rewards, terminations, truncations, infos)"
        answer = parts_of(self.timed_step(dict(actions)), 5, "step()", names)
        obs, rewards, terminated, truncated, infos = answer
        result = StepResult()
        named = zip(names.strip("()").split(", ")[1:4], answer[1:4], strict=True)
        for name, given in named:
            self.note_keys(result, name, given, tuple(actions))
        result.reward = dict(rewards)
        result.terminated = {a: terminated.get(a, False) for a in actions}
        result.truncated = {a: truncated.get(a, False) for a in actions}
        gone = [a for a in actions if result.terminated[a] or result.truncated[a]]
        result.last = {agent: obs[agent] for agent in gone if agent in obs}
        for agent in gone:
            if agent in self.env.agents:
                text = f"{agent} is out and still in agents"
                result.fault("agents", text, "remove agents that are out from agents")
            if agent not in obs and not result.terminated[agent]:
                text = f"{agent} is truncated and has no last observation"
                advice = "give it: what would have followed is estimated from it"
                result.fault("last observation", text, advice)
        lost = [a for a in actions if a not in gone and a not in self.env.agents]
        if lost:
            text = f"{lost[0]} left agents without being terminated or truncated"
            result.fault("agents", text, "set one of the two for it")
        left = tuple(agent for agent in self.env.agents if agent not in gone)
        self._look(result, obs, infos, left)
        return result

    def _look(self, result: StepResult, obs: Any, infos: Any, left: Sequence[Any]) -> None:
        self.note_agents(result)
        self.note_keys(result, "observations", obs, left)
        self.note_keys(result, "infos", infos, left)
        result.deciding = tuple(agent for agent in left if agent in obs)
        result.obs = {agent: obs[agent] for agent in result.deciding}
        masks = {agent: mask_of(obs[agent], infos.get(agent, {})) for agent in result.deciding}
        result.mask = {agent: mask for agent, mask in masks.items() if mask is not None}
        result.over, result.raw = not result.deciding, obs
