"""The page of metrics: every curve of a run, and what it means."""

from __future__ import annotations

from collections.abc import Iterator

from reference_tables import table, text

from sparring.training.records.descriptions import GROUPS, METRICS

HEAD = """# Metrics

Every number that a run logs: in `metrics.sqlite`, TensorBoard, `--csv`, `--wandb`, and as curves of
`sparring plot` and `sparring serve`. A value belongs to an update; the file also has its seconds of
training. [Reading a run](../start/reading-a-run.md) says which to look at first.

```sh
sparring plot latest                      # the curves as PNG and HTML
sparring plot latest --csv curves.csv     # every value, one line each
tensorboard --logdir runs                 # live, beside the browser pages of `sparring serve`
```

With [a network per role](../guides/hierarchy.md) losses and settings have the role at their end:
`losses/entropy/manager`. A callback adds curves of its own (`run.log`), a custom loss its name
under `losses/`. A value that is not finite is stored as missing.

This page is written from `src/sparring/training/records/descriptions.py` (`make docs`); a test
trains with every algorithm and finds each curve here.
"""


def metrics_page() -> str:
    """Return the page."""
    return "\n".join([HEAD, *lines()])


def lines() -> Iterator[str]:
    for group, metrics in METRICS.items():
        yield f"## {group}\n"
        yield f"{GROUPS[group]}\n"
        yield from table(
            ("metric", ""), ((f"`{group}/{name}`", text(what)) for name, what in metrics.items())
        )
        yield ""
