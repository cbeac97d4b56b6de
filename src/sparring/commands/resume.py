"""`sparring resume`: says at once that a run is done, before torch is loaded, or continues it."""

from __future__ import annotations

from sparring.commands.shared.finished import done_already, report_done
from sparring.config.runs import ResumeConfig
from sparring.training.evaluate import loading_early


def run(config: ResumeConfig) -> int:
    if seen := done_already(config):
        return report_done(seen, as_json=config.json)
    with loading_early():
        from sparring.commands import train  # loads torch

        return train.run(config)
