"""What bounds a training in which nothing is wrong, or of which too little is known."""

from __future__ import annotations

from sparring.speed.verdicts.case import Case
from sparring.speed.verdicts.told import CANNOT_TELL, LEARNING, Verdict, counted, percent
from sparring.training.meter.share import WORDS

KNOWN = 0.5
"""Share of the time that has to be explained for a word about the whole."""


def verdict(case: Case, tried: int, *, found: bool) -> Verdict:
    """Say where the time goes, and that nothing of what was tried is faster.

    tried: changes that were timed. found: something better has been named already.
    """
    phases = case.evidence.phases
    known = {name: share for name, share in phases.items() if name in WORDS and name != "other"}
    if sum(known.values()) < KNOWN:
        return unknown(case)
    name, share = max(known.items(), key=lambda one: one[1])
    text = f"{percent(share)} in {WORDS[name]}{how(case, name)}: that is the learning itself"
    if not found:
        text += nothing(tried)
    return Verdict(LEARNING, text, share)


def nothing(tried: int) -> str:
    """What is known of other settings."""
    if not tried:
        return "; no setting stands out"
    which = "the one other setting" if tried == 1 else f"none of {tried} other settings"
    return f"; {which} that was timed is {'no ' * (tried == 1)}faster"


def how(case: Case, name: str) -> str:
    """What decides how long a phase takes."""
    config = case.config
    if name == "update" and config.algo == "ppo":
        epochs = counted(config.ppo.epochs, "epoch")
        return f", {epochs} in minibatches of {config.ppo.minibatch}"
    if name in ("update", "sampling") and case.remembers:
        return f", {config.replay.ratio:g} samples per decision in batches of {config.replay.batch}"
    if name == "inference":
        return f", {counted(config.collect.games, 'game')} at once"
    if name == "stepping" and not case.own_env:
        games, threads = config.collect.games, counted(case.threads, "thread")
        return f", {counted(games, 'game')} on {threads}"
    return ""


def unknown(case: Case) -> Verdict:
    """Say what is known, and what is missing."""
    evidence, facts = case.evidence, []
    if evidence.phases:
        most = max(evidence.phases.items(), key=lambda one: one[1])
        facts.append(f"{percent(most[1])} in {WORDS.get(most[0], most[0])}")
    if evidence.cpu_cores:
        facts.append(f"{evidence.cpu_cores:.1f} of {evidence.cores} cores were busy")
    missing = "; ".join(evidence.blind) or "look for longer (--seconds)"
    known = ", ".join(facts) or "nothing was seen"
    return Verdict(CANNOT_TELL, f"cannot tell: {known}; {missing}", 0.0)
