"""Kuhn and Leduc poker: every history of every deal against the rules written down once more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import sparring
from proof.poker_helpers import from_open_spiel
from sparring import Rules, State, new_state
from sparring.games.terminal import terminal_of
from sparring.pools.native import Pool

KUHN_PAYS = {"pp": 1, "pbp": -1, "pbb": 2, "bp": 1, "bb": 2}
"""What the first seat wins after these moves: chips of a fold, or of a showdown that it wins."""
KUHN_FOLDS = ("pbp", "bp")


@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker", "rock_paper_scissors"])
def test_the_games_are_consistent(game: str) -> None:
    report = sparring.check(game, games=10)
    assert report.passed, report


History = tuple[tuple[int, ...], State]


def histories(state: State, actions: tuple[int, ...] = ()) -> Iterator[History]:
    """Yield every position below one, with the actions that led there."""
    yield actions, state
    for action in state.legal() if not state.over else []:
        after = state.clone()
        after.apply(action)
        yield from histories(after, (*actions, action))


def test_kuhn_pays_as_its_rules_say() -> None:
    seen, ends = set(), 0
    for deal in range(6):
        start = new_state("kuhn_poker", config={"deal": deal})
        first, second = (int(card) for card in start.fields()["cards"])
        seen.add((first, second))
        for actions, state in histories(start):
            moves = "".join("pb"[action] for action in actions)
            assert state.over == (moves in KUHN_PAYS)
            if state.over:
                ends += 1
                wins = moves in KUHN_FOLDS or first > second
                pays = KUHN_PAYS[moves] if wins else -KUHN_PAYS[moves]
                assert state.scores == [pays, -pays] == state.rewards.tolist()
                assert state.end == ("fold" if moves in KUHN_FOLDS else "showdown")
    assert len(seen) == 6 and ends == 30


def leduc_legal(moves: list[int]) -> set[int]:
    """Return what may follow in a round: fold only against a raise, two raises at most."""
    facing = bool(moves) and moves[-1] == 2
    return {1} | ({0} if facing else set()) | ({2} if moves.count(2) < 2 else set())


def leduc_rounds(actions: tuple[int, ...]) -> list[list[int]]:
    """Split moves into rounds: a call that is not the first move of a round ends it."""
    rounds: list[list[int]] = [[]]
    for action in actions:
        if len(rounds[-1]) > 1 and rounds[-1][-1] == 1:
            rounds.append([])
        rounds[-1].append(action)
    return rounds


def leduc_paid(ranks: list[int], actions: tuple[int, ...]) -> int:
    """Return what the first seat wins."""
    chips, actor = [1, 1], 0
    for moves, size in zip(leduc_rounds(actions), (2, 4), strict=False):
        for number, action in enumerate(moves):
            actor = number % 2
            if action > 0:
                chips[actor] = max(chips) + size * (action == 2)
    strength = [10 * (rank == ranks[2]) + rank for rank in ranks[:2]]
    if actions[-1] == 0:
        return chips[1] if actor == 1 else -chips[0]
    return chips[0] * ((strength[0] > strength[1]) - (strength[0] < strength[1]))


@pytest.mark.parametrize("deal", range(0, 120, 7))
def test_leduc_pays_as_its_rules_say(deal: int) -> None:
    start = new_state("leduc_poker", config={"deal": deal})
    cards = [int(card) for card in start.fields()["cards"]]
    ends = 0
    for actions, state in histories(start):
        rounds = leduc_rounds(actions)
        closed = len(rounds[-1]) > 1 and rounds[-1][-1] == 1
        assert state.over == (actions[-1:] == (0,) or (len(rounds) == 2 and closed))
        if state.over:
            ends += 1
            pays = leduc_paid([card // 2 for card in cards], actions)
            assert state.scores == [pays, -pays] == state.rewards.tolist(), actions
        else:
            now = [] if closed else rounds[-1]
            assert set(state.legal()) == leduc_legal(now)
            assert state.seat == len(now) % 2
    assert ends == 4 + 5 * 9  # folds of the first round; what ends the second, after every first


@pytest.mark.parametrize(("game", "deals"), [("kuhn_poker", 6), ("leduc_poker", 120)])
def test_every_deal_is_different_and_drawn_as_often(game: str, deals: int) -> None:
    cards = [new_state(game, config={"deal": deal}).fields()["cards"] for deal in range(deals)]
    assert len({tuple(hand) for hand in cards}) == deals
    each = 40
    pool = Pool(game, deals * each, seed=3, threads=1)
    pool.reset()
    drawn = Counter(tuple(pool.state_of(i).fields()["cards"]) for i in range(deals * each))
    assert len(drawn) == deals
    chi_square = sum((count - each) ** 2 / each for count in drawn.values())
    assert chi_square < deals + 4 * (2 * deals) ** 0.5


@pytest.mark.parametrize(
    "game", ["kuhn_poker", pytest.param("leduc_poker", marks=pytest.mark.slow)]
)
def test_the_rules_are_open_spiels(game: str) -> None:
    pyspiel = pytest.importorskip("pyspiel", reason="needs OpenSpiel: pip install open_spiel")
    ahead, ends = [pyspiel.load_game(game).new_initial_state()], 0
    while ahead:
        theirs = ahead.pop()
        if not theirs.is_chance_node():
            ours = from_open_spiel(theirs)
            assert ours.over == theirs.is_terminal()
            if ours.over:
                ends += 1
                assert ours.scores == theirs.returns()
                continue
            assert (ours.seat, ours.legal()) == (theirs.current_player(), theirs.legal_actions())
        ahead += [theirs.child(action) for action in theirs.legal_actions()]
    assert ends == {"kuhn_poker": 30, "leduc_poker": 5520}[game]


def test_nash_bets_as_often_as_an_equilibrium() -> None:
    """The known one with alpha = 1/3, from many games of every card and place."""
    games = 900
    places: dict[tuple[int, ...], list[float]] = {
        (): [1 / 3, 0, 1],
        (0,): [1 / 3, 0, 1],
        (1,): [0, 1 / 3, 1],
        (0, 1): [0, 2 / 3, 1],
    }
    for deal in (0, 2, 4):
        rules = Rules("kuhn_poker", {"deal": deal})
        for moves, expected in places.items():
            bets = 0
            for seed in range(games):
                state = new_state(rules, seed=seed)
                for action in moves:
                    state.apply(action)
                card = int(state.fields()["cards"][state.seat])
                bets += state.ask("nash")
            share = expected[card]
            spread = (share * (1 - share) / games) ** 0.5
            assert abs(bets / games - share) <= 4 * spread


def test_a_seat_never_sees_the_other_card_nor_the_table_too_early() -> None:
    for game in ("kuhn_poker", "leduc_poker"):
        shown: dict[tuple[int, ...], set[bytes]] = {}
        for deal in range(6 if game == "kuhn_poker" else 120):
            start = new_state(game, config={"deal": deal})
            for actions, state in histories(start):
                known = [int(state.fields()["cards"][0]) // (1 + (game == "leduc_poker"))]
                if game == "leduc_poker" and state.fields()["round"][0] == 1:
                    known.append(int(state.fields()["cards"][2]) // 2)
                key = (len(actions), *actions, *known)
                shown.setdefault(key, set()).add(state.observe_bytes(0).tobytes())
        assert {len(rows) for rows in shown.values()} == {1}


@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker"])
def test_the_terminal_shows_a_person_no_card_but_its_own(game: str) -> None:
    """The same screen and choices for every deal that the person cannot tell apart."""
    shown: dict[tuple[object, ...], set[str]] = {}
    for deal in range(6 if game == "kuhn_poker" else 120):
        terminal = terminal_of(Rules(game), person=1)
        for actions, state in histories(new_state(game, config={"deal": deal})):
            if state.over:
                assert "chip" in terminal.result(state) or "share" in terminal.result(state)
                continue
            screen = terminal.show(state), [choice.short for choice in terminal.choices(state)]
            known = state.observe_bytes(1).tobytes()
            shown.setdefault((actions, known), set()).add(str(screen))
    assert {len(screens) for screens in shown.values()} == {1}


def test_moves_are_called_by_what_they_do() -> None:
    state = new_state("kuhn_poker", config={"deal": 0})
    terminal = terminal_of(state.rules, person=0)
    assert [choice.name for choice in terminal.choices(state)] == ["check", "bet"]
    before = state.clone()
    state.apply(1)
    assert terminal.narrate(before, 1, state) == ["you: bet"]
    assert [choice.name for choice in terminal.choices(state)] == ["fold", "call"]
    state = new_state("leduc_poker", config={"deal": 0})
    assert [c.name for c in terminal_of(state.rules, 0).choices(state)] == ["check", "raise"]
    state.apply(2)
    assert [c.name for c in terminal_of(state.rules, 0).choices(state)] == ["fold", "call", "raise"]
    before = state.clone()
    state.apply(1)
    told = terminal_of(state.rules, 0).narrate(before, 1, state)
    assert told == ["seat 1: call", "  the table's card is Q"]


@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker"])
def test_the_page_lists_every_flag_part_block_and_bot(game: str) -> None:
    page = (Path(__file__).parents[2] / f"docs/games/{game}.md").read_text()
    rules = Rules(game)
    blocks = [block.name for block in rules.blocks]
    for name in (*rules.config, *rules.parts, *rules.bots, *blocks):
        assert f"| `{name}` |" in page, name
