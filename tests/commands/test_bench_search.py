from __future__ import annotations

import json
import re

import pytest

from sparring.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::sparring.errors.SparringWarning")

QUICK = "--games 8 --rounds 2 --threads 1"


@pytest.mark.parametrize("rule", ["gumbel", "puct"])
def test_search_and_network_are_measured_in_turn(
    rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"bench search tic_tac_toe {QUICK} --simulations 2 8 --rule {rule} --json"
    assert main(words.split()) == 0
    few, many = json.loads(capsys.readouterr().out)["measured"]
    assert (few["simulations"], many["simulations"]) == (2, 8)
    for one in (few, many):
        assert len(one["simulations_per_s"]) == len(one["share_of_network"]) == 2
        assert 0 < one["batch"] <= 8 * 16
        assert one["nodes_per_gb"] == pytest.approx(1e9 / one["bytes_per_node"], rel=0.01)


def test_the_table_names_the_share(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"bench search connect_four {QUICK} --simulations 4".split()) == 0
    assert re.search(r"\d+%", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("skull_king", "hides cards"),
        ("tic_tac_toe --simulations 0", "from 1 to"),
        ("tic_tac_to", "no policy"),
    ],
)
def test_what_cannot_be_measured(
    words: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "search", *words.split(), *QUICK.split()]) == 2
    assert reason in capsys.readouterr().err
