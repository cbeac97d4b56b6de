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
OWN_NET = "own_nets:Plain"

Arrays = dict[str, npt.NDArray[Any]]


def loaded(name: str) -> tuple[sparring.Policy, Arrays]:
    (saved,) = (path for path in (SAVED / name).iterdir() if path.name != ANSWERS)
    with np.load(SAVED / name / ANSWERS, allow_pickle=False) as file:
        return sparring.load(saved, trust=OWN_NET), dict(file)


def close(said: npt.NDArray[Any], kept: npt.NDArray[Any]) -> bool:
    """Whether they are the same up to rounding: another CPU sums in another order."""
    return said.shape == kept.shape and np.allclose(said, kept, rtol=1e-5, atol=2e-6)


def demand_answers(policy: sparring.Policy, kept: Arrays) -> None:
    asked = kept["obs"], kept["mask"], kept["memory"]
    best, remembered = policy.decide(*asked, greedy=True)
    drawn, _ = policy.decide(*asked, seed=7, rollout=1, step=2)
    assert close(best, kept["best"])
    assert close(drawn, kept["drawn"])
    assert close(remembered.view(np.float32), kept["remembered"].view(np.float32))
    if "worth" in kept:
        assert close(policy.value(*asked), kept["worth"])
    if "probabilities" in kept:
        assert close(policy.probabilities(*asked), kept["probabilities"])
    if "mean" in kept:
        mean, deviation = policy.gaussian(kept["obs"])
        assert close(mean, kept["mean"])
        assert close(deviation, kept["deviation"])
    demand_heads(policy, kept)


def demand_heads(policy: sparring.Policy, kept: Arrays) -> None:
    """Demand what every head said, whatever it is called by now."""
    rows = np.concatenate([kept["obs"], kept["memory"]], axis=1)
    said = list(policy.heads(rows).values())
    wanted = {name: head for name, head in kept.items() if name.startswith("head_")}
    assert len(said) == len(wanted)
    for name, head in wanted.items():
        assert any(close(one, head) for one in said), name


@pytest.mark.few(23)
@pytest.mark.parametrize("name", NAMES)
def test_a_policy_of_57c4c850_answers_as_it_did(name: str) -> None:
    """Whoever trained with that version plays on with what it saved."""
    policy, kept = loaded(name)
    demand_answers(policy, kept)


@pytest.mark.parametrize(
    "name",
    [
        *NAMES[::3],
        *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES if name not in NAMES[::3]),
    ],
)
def test_a_policy_of_57c4c850_can_be_saved_anew(name: str, tmp_path: Path) -> None:
    """What this version makes of such a policy loads too, and answers the same."""
    policy, kept = loaded(name)
    again = sparring.Agent(policy, tmp_path, "done").save(tmp_path / "again")
    demand_answers(sparring.load(again, trust=OWN_NET), kept)
