"""Damaged files of all kinds: each is read, or refused in one line that a person can act on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fuzz.running import Case, run_cases

pytest.importorskip("httpx", reason="starlette's test client needs httpx: pip install httpx")

FEW = {
    **dict.fromkeys(("replay", "kif", "csa", "curriculum", "curriculum_json"), 2),
    **dict.fromkeys(("usi", "sweep", "sweep_trials", "sweep_confirm", "sweep_options"), 2),
    **dict.fromkeys(("usi_engine", "openings", "starts", "starts_hockey", "starts_shogi"), 3),
    **dict.fromkeys(("config", "opponents", "curriculum_hockey", "bench_file", "act"), 3),
    **dict.fromkeys(("bench_record", "ladder"), 4),
    **dict.fromkeys(("run_config", "listed_config", "results", "events", "network"), 2),
    **dict.fromkeys(("machine", "metrics", "curves", "league"), 2),
}
"""Kinds of files, and how many of each are damaged here: fewer where one takes longer to read."""
MANY = 2000


def check_none_bad(cases: Sequence[Case]) -> None:
    bad = [str(outcome) for outcome in run_cases(cases) if outcome.is_fault]
    assert not bad, "\n".join([f"{len(bad)} of {len(cases)}:", *bad[:20]])


def test_damaged_files_are_read_or_refused_in_a_line() -> None:
    check_none_bad([(kind, seed) for kind, count in FEW.items() for seed in range(count)])


def test_no_kind_of_file_is_left_out() -> None:
    from fuzz.targets import KINDS

    assert FEW.keys() == KINDS.keys()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", FEW)
def test_thousands_of_damaged_files_are_read_or_refused_in_a_line(kind: str) -> None:
    check_none_bad([(kind, seed) for seed in range(MANY)])
