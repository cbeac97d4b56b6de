"""Shogi against counts, positions and games recorded with other programs."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from sparring.games import shogi
from vectors.shogi import ENDS, SCORES, crc_of, data

QUICK_NODES, SLOW_NODES = 3_000_000, 600_000_000
PERFT = [
    (position["name"], position["sfen"], depth, nodes)
    for position in data()["perft"]
    for depth, nodes in enumerate(position["nodes"], start=1)
    if nodes <= SLOW_NODES
]


def named(vectors: list[dict[str, Any]]) -> Any:
    return pytest.mark.parametrize("vector", vectors, ids=lambda v: v.get("id", v.get("name")))


@pytest.mark.parametrize(
    ("name", "sfen", "depth", "nodes"),
    [pytest.param(*row, marks=[pytest.mark.slow] if row[3] > QUICK_NODES else []) for row in PERFT],
)
def test_perft(name: str, sfen: str, depth: int, nodes: int) -> None:
    assert shogi.perft(sfen, depth) == nodes, name


@named([d for d in data()["divide"] if sum(d["moves"].values()) <= 10_000_000])
def test_perft_by_first_move(vector: dict[str, Any]) -> None:
    sfen = next(p["sfen"] for p in data()["perft"] if p["name"] == vector["name"])
    assert shogi.divide(sfen, vector["depth"]) == vector["moves"]


@named(data()["legality"])
def test_legal_moves(vector: dict[str, Any]) -> None:
    moves = shogi.legal_moves(vector["sfen"])
    assert set(vector["legal"]) <= set(moves)
    assert not set(vector["illegal"]) & set(moves)
    assert len(moves) == vector["count"]
    assert crc_of(moves) == vector["crc"]


@named(data()["sequence"])
def test_how_games_end(vector: dict[str, Any]) -> None:
    state = shogi.load_sfen(vector["sfen"])
    for move in vector["moves"].split():
        assert not state.over
        shogi.play(state, move)
    assert state.end == ENDS[vector["reason"]]
    assert state.scores == SCORES[vector["result"]]
    assert state.rewards.tolist() == SCORES[vector["result"]]


@named(data()["declaration"])
def test_declaration(vector: dict[str, Any]) -> None:
    sfen = shogi.START if vector["sfen"] == "startpos" else vector["sfen"]
    camp = shogi.camp(sfen)
    assert (camp.pieces, camp.points) == (vector["pieces_in_zone"], vector["points"])
    assert camp.claim == ("win" if vector["can_declare"] else None)


def test_actions() -> None:
    for vector in data()["encoding"]:
        assert shogi.legal_moves(vector["sfen"])[vector["usi"]] == vector["action"]
    state = shogi.load_sfen()
    assert state.legal() == data()["start_legal_actions"]
    shogi.play(state, "7g7f")
    assert state.legal() == data()["after_7g7f_legal_actions"]


def test_keys() -> None:
    for sfen, key in data()["keys"]:
        assert int(shogi.load_sfen(sfen).fields()["key"][0]) == int(key, 16)


def test_the_46_planes() -> None:
    for vector in data()["observation"]:
        state = shogi.load_sfen(vector["sfen"], config={"observation": "PLANES46"})
        shogi.play(state, *vector["moves"].split())
        planes = state.observe_bytes(state.seat)[: 46 * 81]
        assert int(planes.sum()) == vector["c46_sum"]
        assert f"{zlib.crc32(planes.tobytes()):08x}" == vector["c46_crc"]


@pytest.mark.parametrize(
    "policy",
    [
        "entering",
        *(
            pytest.param(p, marks=pytest.mark.slow)
            for p in ("uniform", "sharp", "shuffle", "checker")
        ),
    ],
)
def test_recorded_games(policy: str) -> None:
    games = [game for game in data()["games"] if game["policy"] == policy]
    assert games
    for game in games:
        replay(game)


def replay(game: dict[str, Any]) -> None:
    state = shogi.load_sfen(game["sfen"])
    crc = 0
    for ply, move in enumerate(game["moves"].split()):
        assert not state.over, f"game {game['id']} ended before ply {ply}: {state.end}"
        moves = shogi.moves(state)
        assert len(moves) == len(state.legal()) == game["n"][ply], f"game {game['id']} ply {ply}"
        crc = zlib.crc32(crc_of(moves).encode(), crc)
        state.apply(moves[move])
    final = shogi.legal_moves(shogi.read_sfen(state))
    assert len(final) == game["n"][-1]
    assert f"{zlib.crc32(crc_of(final).encode(), crc):08x}" == game["crc"], f"game {game['id']}"
    assert state.end == ENDS[game["reason"]]
    assert state.truncated == (game["reason"] == "max_plies")
    assert state.scores == SCORES[game["result"]]
    assert shogi.read_sfen(state) == game["final"]
    assert state.audit() == ""
