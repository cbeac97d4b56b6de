"""From the words of `opponents` to everybody who plays: ids, slots, mixes, and who answers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sparring.config import LeagueConfig, NetConfig, TrainConfig
from sparring.curriculum.checks import check_weights
from sparring.curriculum.phases import Phase
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.league.players import CallablePlayer, is_player_factory, name_of
from sparring.league.roles import EXPLOITERS, MAIN
from sparring.league.seating import (
    FactoryPlayer,
    LineupSpec,
    PlayerSpec,
    read_lineups,
    resolve_spec,
)
from sparring.learn.acting import Actor, PerGamePlayers, PlayerActor
from sparring.learn.plan import Fixed, Participants, Seating
from sparring.nets.critic_rows import never_plays
from sparring.nets.heads import QUANTILES, default_heads
from sparring.nets.hierarchy import nets_by_role
from sparring.nets.inputs import memory_bytes_of
from sparring.nets.policy import Policy
from sparring.pools.lineups import LEARNER, Lineup, Mix, PlayerId
from sparring.schedule import Moment, Schedule
from sparring.store.lookup import find_policy
from sparring.store.policies import load_playable
from sparring.store.styles import Style
from sparring.training.planning.algorithms import BY_VALUE, GREEDY

GIVEN = "given:"
"""Before what a program gave as objects, in a run's file."""
BEGINNING = Moment(0, 0.0)
Key = tuple[Any, Style]
"""Of a player: what names it, and how it plays."""
MAX_SLOTS = 255
"""A mix holds no more."""
OF_THE_PAST = ("every_decisions", "gate", "sampling", "slots", "gigabytes")
"""Settings of a league that speak of past selves."""


def participants_of(
    rules: Rules,
    config: TrainConfig,
    nets: Mapping[str, NetConfig],
    given: Sequence[Any] = (),
    phases: Sequence[Phase] = (),
) -> Participants:
    """Read who plays.

    nets: the learner's, by role; one called "" where it is for all.
    given: instead of the words of the configuration, with policies and functions among them.
    phases: of the run; those that name nobody meet whom the run meets.
    """
    missing = [word.removeprefix(GIVEN) for word in config.opponents if word.startswith(GIVEN)]
    if missing and not given:
        raise ConfigError(
            f"opponents: {', '.join(missing)} came from the program that began this run; give them "
            "again: sparring.resume(run, opponents=[...])"
        )
    lineups = read_lineups(rules, list(given) or list(config.opponents), scheduled=True)
    check_weights([weight_of(table) for table in lineups])
    named = [phase.opponents for phase in phases] or [None]
    return ParticipantsBuilder(rules, config, nets).cast(
        [
            lineups if words is None else read_lineups(rules, words, scheduled=True)
            for words in named
        ]
    )


def weight_of(table: LineupSpec) -> Schedule:
    return table.schedule or Schedule.constant(table.weight)


def opponent_texts(given: Sequence[Any]) -> tuple[str, ...]:
    """What the file of a run says of opponents that only its program has."""
    return tuple(word if isinstance(word, str) else f"{GIVEN}{shown(word)}" for word in given)


def shown(word: Any) -> str:
    if isinstance(word, list | tuple):
        return ",".join(shown(inner) for inner in word)
    return str(word) if isinstance(word, str | int | float) else name_of(word)


def pin_checkpoints(rules: Rules, words: Sequence[str]) -> tuple[str, ...]:
    """The same words with checkpoints for runs: `latest` is another run tomorrow."""
    found = []
    for word in words:
        who, equals, weight = word.rpartition("=") if "=" in word else (word, "", "")
        names = [pin_checkpoint(rules, name) for name in who.split(",")]
        found.append(f"{','.join(names)}{equals}{weight}")
    return tuple(found)


def pin_checkpoint(rules: Rules, name: str) -> str:
    """A player's word, with a checkpoint or file for what lies on the disk."""
    (table,) = read_lineups(rules, [name])
    policies = [who for who in table.players if who.kind == "policy"]
    if not policies:
        return name
    folder, _ = load_playable(find_policy(policies[0].target), game=rules)
    path = str(folder)
    if any(sign in path for sign in ",="):
        raise ConfigError(f"opponents: {path} has a comma or = in its name; move it elsewhere")
    return f"{path}{policies[0].style}"


class ParticipantsBuilder:
    """Gives everybody who is named an id, whoever is named twice the same."""

    def __init__(self, rules: Rules, config: TrainConfig, nets: Mapping[str, NetConfig]) -> None:
        self.rules, self.config = rules, config
        self.roles = {role: net for role, net in nets.items() if role}
        self.frozen: dict[Key, Policy] = {}
        """Of the learner's own kind: they go into slots."""
        self.apart: dict[Key, Policy | CallablePlayer | FactoryPlayer] = {}
        """Everybody else who is no bot."""
        self.loaded: dict[str, Any] = {}
        self.styles: set[bool] = set()
        """How past selves are to play."""

    def cast(self, phases: Sequence[Sequence[LineupSpec]]) -> Participants:
        """Meet everybody of all phases first; their ids follow from how many there are."""
        everyone = [who for tables in phases for table in tables for who in table.players]
        for who in everyone:
            self._meet(who)
        past = [who for who in everyone if who.kind in ("past", "best")]
        if len(self.styles) > 1:
            raise ConfigError("opponents: past selves are greedy or sampled, not both; choose one")
        best = self.config.algo in GREEDY
        if best and any(who.style.greedy is False for who in past):
            raise ConfigError(
                f"opponents: past selves of {self.config.algo} take the best action, without "
                "probabilities to sample from; leave @sampled out"
            )
        if self.config.eval.off and any(who.kind == "best" for who in past):
            raise ConfigError("opponents: best needs evaluations; leave --eval.off or best out")
        past_slots = self.config.league.slots if past else 0
        slots = past_slots + len(self.frozen)
        if slots > MAX_SLOTS:
            raise ConfigError(
                f"{len(self.frozen)} policies and {past_slots} past selves need more than "
                f"{MAX_SLOTS} slots; lower league.slots"
            )
        ids = {key: slots - at for at, key in enumerate(self.frozen)}
        ids |= {key: slots + 1 + at for at, key in enumerate(self.apart)}
        seatings = tuple(tuple(self._seating(table, ids) for table in one) for one in phases)
        fixed = [
            Fixed(policy.name, ids[key], policy.net.state_dict(), bool(key[1].greedy))
            for key, policy in self.frozen.items()
        ]
        return Participants(
            lineups=tuple(one.lineup for one in seatings[0] if one.weight.at(BEGINNING) > 0),
            fixed=tuple(fixed),
            past_slots=past_slots,
            recent=tuple(sorted({who.newest for who in past if who.newest})),
            mixes=tuple(dict.fromkeys(mix_of(who) for who in past)),
            greedy=best or self.styles == {True},
            actors={ids[key]: self._actor(key[1], who) for key, who in self.apart.items()},
            others=tuple(player.name for player in self.apart.values()),
            seatings=seatings,
        )

    def _actor(self, style: Style, player: Policy | CallablePlayer | FactoryPlayer) -> Actor:
        seed = self.config.seed
        if isinstance(player, FactoryPlayer):
            return PerGamePlayers(player.for_game, self.rules.rows, seed)
        return PlayerActor(player, seed, greedy=bool(style.greedy))

    def _seating(self, table: LineupSpec, ids: dict[Key, int]) -> Seating:
        players = tuple(self._player(who, ids) for who in table.players)
        return Seating(Lineup(players, table.weight, table.shuffle), weight_of(table))

    def _meet(self, who: PlayerSpec) -> None:
        if who.kind in ("past", "best"):
            self.styles.add(bool(who.style.greedy))
        if who.kind in ("self", "bot", "past", "best"):
            return
        key = self._key(who)
        if is_player_factory(who.player):
            self.apart[key] = FactoryPlayer(self.rules, who.player)
            return
        player = resolve_spec(who, self.rules, self.loaded)
        if isinstance(player, Policy) and player.seeing:
            raise ConfigError(f"opponents: {never_plays(player.name)}")
        if isinstance(player, Policy) and self._is_alike(player):
            self.frozen[key] = player
        else:
            self._check_room(player)
            self._check_search(player)
            self.apart[key] = player

    def _check_room(self, player: Policy | CallablePlayer) -> None:
        """Refuse whoever remembers more than the learner: rows have room for the learner's own."""
        room = 0 if self.roles else memory_bytes_of(self.rules, self.config.net)
        if player.memory_bytes > room:
            raise ConfigError(
                f"opponents: {player.name} remembers {player.memory_bytes} bytes of each seat and "
                f"the learner {room}; give the learner as much (net.memory, net.memory_width, "
                "net.frames), or leave it out"
            )

    def _check_search(self, player: Policy | CallablePlayer) -> None:
        """Refuse a search while other groups of games step: it reads positions of the pool."""
        groups = self.config.collect.groups
        if isinstance(player, Policy) and player.budget and groups > 1:
            raise ConfigError(
                f"opponents: {player.name} searches in games that stand still, and collect.groups "
                f"{groups} steps some meanwhile; leave collect.groups out"
            )
        if isinstance(player, Policy) and player.budget and self.config.workers != "0":
            raise ConfigError(
                f"opponents: {player.name} searches in environments of this process, and --workers "
                f"{self.config.workers} steps them in others; leave --workers out"
            )

    def _is_alike(self, policy: Policy) -> bool:
        """Whether a policy is of the learner's own kind.

        One by value is not, if the learner's are drawn from, or the other way round: slots and
        archive speak of all their networks alike. One that searches is not: slots hold networks.
        """
        alike = policy.is_value_based == (self.config.algo in BY_VALUE)
        alike = alike and policy.budget is None and policy.temperature == 1
        return alike and same_kind(policy, self.rules, self.config.net, self.roles)

    def _key(self, who: PlayerSpec) -> Key:
        return (who.target or id(who.player)), replace(who.style, greedy=bool(who.style.greedy))

    def _player(self, who: PlayerSpec, ids: dict[Key, int]) -> PlayerId | Mix:
        if who.kind == "self":
            return LEARNER
        if who.kind == "bot":
            return who.target
        if who.kind in ("past", "best"):
            return Mix(mix_of(who))
        return ids[self._key(who)]


def check_past(participants: Participants, leagues: Sequence[LeagueConfig]) -> None:
    """Refuse settings of exploiters, and of past selves that nobody meets."""
    restarts = [league.restart for league in leagues if league.restart != LeagueConfig.restart]
    if restarts:
        raise ConfigError(
            f"league.restart {restarts[0]}: nobody restarts; exploiters do: add --league.shared, "
            '`past` among --opponents and --vary \'league.role="main","exploiter"\', or leave '
            "it out"
        )
    if participants.slots:
        return
    for league in leagues:
        for name in OF_THE_PAST:
            given = getattr(league, name)
            if given != getattr(LeagueConfig, name):
                raise ConfigError(
                    f"league.{name} {given}: there are no past selves to meet; add `past` to the "
                    "opponents, as in --opponents self=1 past=1, or leave it out"
                )


def check_leagues(participants: Participants, leagues: Sequence[LeagueConfig]) -> None:
    """Refuse an exploiter whom no main agent would ever meet, and settings without effect."""
    first = leagues[0]
    if any(league.slots != first.slots for league in leagues):
        raise ConfigError("league.slots: members of a population have the same number of them")
    exploiters = [league for league in leagues if league.role in EXPLOITERS]
    if not exploiters:
        check_past(participants, leagues)
        return
    mains = [league for league in leagues if league.role == MAIN and league.shared]
    alone = any(not league.shared for league in exploiters)
    if not participants.past_slots or not mains or alone:
        raise ConfigError(
            f"league.role {exploiters[0].role}: there is no main agent to meet; it trains beside "
            "one, with --league.shared, `past` among --opponents and --vary "
            '\'league.role="main","exploiter"\'. Against a policy that is trained already: '
            "sparring exploit POLICY"
        )


def mix_of(who: PlayerSpec) -> str:
    return f"past:{who.newest}" if who.newest else who.kind


def same_kind(policy: Policy, rules: Rules, net: NetConfig, roles: Mapping[str, NetConfig]) -> bool:
    """Whether a policy has the network of the learner (by role, where it has several)."""
    theirs, net = policy.net, replace(net.played, sees=False)
    lineups = {role: one.config for role, one in nets_by_role(theirs)}
    if lineups or roles:
        return lineups.keys() == roles.keys() and all(
            replace(mine, sparse=roles[role].sparse) == roles[role]
            for role, mine in lineups.items()
        )
    alike = replace(theirs.config, sparse=net.sparse) == net
    remembers = theirs.inputs.memory == memory_bytes_of(rules, net)
    heads = {name: width for name, width in theirs.heads.items() if name != QUANTILES}
    return alike and remembers and heads == default_heads(rules)
