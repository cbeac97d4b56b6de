"""Policies that 57c4c850 saved still load, and answer as they answered then.

`policies_57c4c850/NAME` holds a policy as that version wrote it, and in `answers.npz` positions
(`obs`, `mask`, `memory`) with what that version said about them on a CPU: every head (`head_...`),
the best and a drawn action, probabilities or a Gaussian, the value, what is remembered. They are
never made anew; whatever is renamed since, these files have the words of then.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sparring

SAVED = Path(__file__).parent / "policies_57c4c850"
ANSWERS = "answers.npz"
NAMES = sorted(folder.name for folder in SAVED.iterdir())
CLOSE = {"rtol": 1e-5, "atol": 2e-6}
"""Another CPU sums in another order."""
OWN_NET = "own_nets:Plain"

Arrays = dict[str, npt.NDArray[Any]]


def loaded(name: str) -> tuple[sparring.Policy, Arrays]:
    (saved,) = (path for path in (SAVED / name).iterdir() if path.name != ANSWERS)
    with np.load(SAVED / name / ANSWERS, allow_pickle=False) as file:
        return sparring.load(saved, trust=OWN_NET), dict(file)


def demand_answers(policy: sparring.Policy, kept: Arrays) -> None:
    asked = kept["obs"], kept["mask"], kept["memory"]
    best, remembered = policy.decide(*asked, greedy=True)
    drawn, _ = policy.decide(*asked, seed=7, rollout=1, step=2)
    np.testing.assert_allclose(best, kept["best"], **CLOSE)
    np.testing.assert_allclose(drawn, kept["drawn"], **CLOSE)
    np.testing.assert_allclose(
        remembered.view(np.float32), kept["remembered"].view(np.float32), **CLOSE
    )
    if "worth" in kept:
        np.testing.assert_allclose(policy.value(*asked), kept["worth"], **CLOSE)
    if "probabilities" in kept:
        np.testing.assert_allclose(policy.probabilities(*asked), kept["probabilities"], **CLOSE)
    if "mean" in kept:
        mean, deviation = policy.gaussian(kept["obs"])
        np.testing.assert_allclose(mean, kept["mean"], **CLOSE)
        np.testing.assert_allclose(deviation, kept["deviation"], **CLOSE)
    demand_heads(policy, kept)


def demand_heads(policy: sparring.Policy, kept: Arrays) -> None:
    """Demand what every head said, whatever it is called by now."""
    rows = np.concatenate([kept["obs"], kept["memory"]], axis=1)
    said = [head.numpy() for head in policy.heads(rows).values()]
    wanted = {name: head for name, head in kept.items() if name.startswith("head_")}
    assert len(said) == len(wanted)
    for name, head in wanted.items():
        alike = [one for one in said if one.shape == head.shape]
        assert any(np.allclose(one, head, **CLOSE) for one in alike), name


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_of_57c4c850_answers_as_it_did(name: str) -> None:
    """Whoever trained with that version plays on with what it saved."""
    policy, kept = loaded(name)
    demand_answers(policy, kept)


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_of_57c4c850_can_be_saved_anew(name: str, tmp_path: Path) -> None:
    """What this version makes of such a policy loads too, and answers the same."""
    policy, kept = loaded(name)
    again = sparring.Agent(policy, tmp_path, "done").save(tmp_path / "again")
    demand_answers(sparring.load(again, trust=OWN_NET), kept)
