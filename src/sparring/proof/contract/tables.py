"""PettingZoo environments, driven: whose turn it is, and who is out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparring.proof.contract.drivers import (
    Actions,
    Driver,
    EnvRaisedError,
    Moment,
    mask_of,
    parts_of,
)


class TableDriver(Driver):
    """What AECEnv and ParallelEnv have in common."""

    def everyone(self) -> Sequence[Any]:
        return tuple(self.env.possible_agents)

    def observation_space(self, who: Any) -> Any:
        return self.env.observation_space(who)

    def action_space(self, who: Any) -> Any:
        return self.env.action_space(who)

    def note_agents(self, moment: Moment) -> None:
        """Note agents that nobody has heard of, and those that are there twice."""
        agents = list(self.env.agents)
        strangers = [agent for agent in agents if agent not in self.env.possible_agents]
        if strangers:
            text = f"{strangers[0]} is in agents and not in possible_agents"
            moment.fault("agents", text, "list everyone in possible_agents")
        if len(set(agents)) < len(agents):
            text = f"agents {agents} has somebody twice"
            moment.fault("agents", text, "remove agents that are out")

    def note_keys(self, moment: Moment, name: str, given: Any, agents: Sequence[Any]) -> None:
        """Note that a dictionary lacks agents."""
        if not isinstance(given, Mapping):
            raise EnvRaisedError(name, f"is {type(given).__name__}, need a dict by agent")
        missing = [agent for agent in agents if agent not in given]
        if missing:
            text = f"{name} has no {missing[0]!r}, who is there; its keys: {list(given)}"
            moment.fault("agents", text, "give every agent that is there a value")


class TurnDriver(TableDriver):
    """A PettingZoo AECEnv."""

    kind = "pettingzoo AECEnv"

    def reset(self, seed: int | None) -> Moment:
        self.restart(seed)
        moment = Moment()
        if not self.env.agents:
            moment.fault("agents", "nobody is there after a reset", "fill agents")
        self._look(moment)
        return moment

    def look_again(self, answer: Any) -> Moment:
        moment = Moment()
        self._look(moment)
        return moment

    def step(self, actions: Actions) -> Moment:
        (agent,) = actions
        self.timed_step(actions[agent])
        moment = Moment(reward=dict(self.env.rewards))
        self._look(moment)
        return moment

    def _look(self, moment: Moment) -> None:
        """See who is out, let them step with None, and see who is next."""
        env = self.env
        agents = list(env.agents)
        self.note_agents(moment)
        for name in ("rewards", "terminations", "truncations", "infos", "_cumulative_rewards"):
            self.note_keys(moment, name, getattr(env, name, None), agents)
        moment.terminated = {a: env.terminations.get(a, False) for a in agents}
        moment.truncated = {a: env.truncations.get(a, False) for a in agents}
        gone = [a for a in agents if moment.terminated[a] or moment.truncated[a]]
        moment.last = {agent: self.call("observe", agent) for agent in gone}
        for _ in gone:
            agent = env.agent_selection
            if agent not in gone:
                break  # the others follow when it is their turn
            self.call("step", None)
            if agent in env.agents:
                text = f"{agent} is out, stepped with None, and is still in agents"
                advice = (
                    "begin step() with: if the agent is out, return self._was_dead_step(action)"
                )
                moment.fault("agents", text, advice)
                break
        left = [agent for agent in env.agents if agent not in gone]
        moment.over = not left
        if left:
            self._ask(moment, env.agent_selection, left)
        moment.given = (moment.obs, moment.last)

    def _ask(self, moment: Moment, agent: Any, left: Sequence[Any]) -> None:
        if agent not in left:
            who = ", ".join(map(str, left))
            raise EnvRaisedError("agent_selection", f"is {agent!r}, which is not in: {who}")
        obs = self.call("observe", agent)
        mask = mask_of(obs, self.env.infos.get(agent, {}))
        moment.asked, moment.obs = (agent,), {agent: obs}
        moment.mask = {} if mask is None else {agent: mask}


class ParallelDriver(TableDriver):
    """A PettingZoo ParallelEnv."""

    kind = "pettingzoo ParallelEnv"

    def reset(self, seed: int | None) -> Moment:
        obs, infos = parts_of(self.restart(seed), 2, "reset()", "(observations, infos)")
        moment = Moment()
        agents = tuple(self.env.agents)
        if not agents:
            moment.fault("agents", "nobody is there after a reset", "fill agents")
        self._look(moment, obs, infos, agents)
        return moment

    def look_again(self, answer: Any) -> Moment:
        moment = Moment(asked=tuple(self.env.agents))
        if answer is not None:
            obs, infos = answer
            self._look(moment, obs, infos, moment.asked)
        return moment

    def step(self, actions: Actions) -> Moment:
        names = "(observations, rewards, terminations, truncations, infos)"
        answer = parts_of(self.timed_step(dict(actions)), 5, "step()", names)
        obs, rewards, terminated, truncated, infos = answer
        moment = Moment()
        named = zip(names.strip("()").split(", ")[1:4], answer[1:4], strict=True)
        for name, given in named:
            self.note_keys(moment, name, given, tuple(actions))
        moment.reward = dict(rewards)
        moment.terminated = {a: terminated.get(a, False) for a in actions}
        moment.truncated = {a: truncated.get(a, False) for a in actions}
        gone = [a for a in actions if moment.terminated[a] or moment.truncated[a]]
        moment.last = {agent: obs[agent] for agent in gone if agent in obs}
        for agent in gone:
            if agent in self.env.agents:
                text = f"{agent} is out and still in agents"
                moment.fault("agents", text, "take agents that are out off agents")
            if agent not in obs and not moment.terminated[agent]:
                text = f"{agent} is truncated and has no last observation"
                advice = "give it: what would have followed is estimated from it"
                moment.fault("last observation", text, advice)
        lost = [a for a in actions if a not in gone and a not in self.env.agents]
        if lost:
            text = f"{lost[0]} left agents without being terminated or truncated"
            moment.fault("agents", text, "set one of the two for it")
        left = tuple(agent for agent in self.env.agents if agent not in gone)
        self._look(moment, obs, infos, left)
        return moment

    def _look(self, moment: Moment, obs: Any, infos: Any, left: Sequence[Any]) -> None:
        self.note_agents(moment)
        self.note_keys(moment, "observations", obs, left)
        self.note_keys(moment, "infos", infos, left)
        moment.asked = tuple(agent for agent in left if agent in obs)
        moment.obs = {agent: obs[agent] for agent in moment.asked}
        masks = {agent: mask_of(obs[agent], infos.get(agent, {})) for agent in moment.asked}
        moment.mask = {agent: mask for agent, mask in masks.items() if mask is not None}
        moment.over, moment.given = not moment.asked, obs
