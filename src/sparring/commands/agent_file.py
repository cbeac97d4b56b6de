"""`sparring export --html`: an agent as one page that plays by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sparring.errors import ConfigError
from sparring.machine import show_size
from sparring.nets.policy import Policy
from sparring.store.files import write_atomic
from sparring.targets import check_file, writing
from sparring.web.agent_page import MARK, agent_page

LOOK = 4096
"""A page says within so many bytes that it is one of ours."""


def check_page(target: Path) -> bool:
    """Refuse what may not be written to; return whether a page of ours is to be replaced."""
    check_file(target, "--html", suffixes=(".html", ".htm"))
    if not target.exists():
        return False
    try:
        with target.open("rb") as file:
            ours = MARK.encode() in file.read(LOOK)
    except OSError as wrong:
        raise ConfigError(f"--html {target}: {wrong.strerror}; choose another") from None
    if not ours:
        raise ConfigError(
            f"{target} is there already and no agent of sparring; choose another name"
        )
    return True


def write_page(policy: Policy, word: str, target: Path) -> dict[str, Any]:
    """Write the page, the whole of it or nothing; return what is to be said about it."""
    page, parts, about = agent_page(policy, word)
    replaced = check_page(target)
    with writing(target, "--html"):
        write_atomic(target, page.encode())
    return {
        "file": str(target),
        "bytes": target.stat().st_size,
        "replaced": replaced,
        "game": policy.rules.name,
        "bots": list(policy.rules.bots),
        "parts": parts,
        "strength": about["strength"],
    }


def print_page(policy: Policy, facts: dict[str, Any]) -> None:
    """Say where the page is, how large, and what is in it."""
    again = ", in place of the one before" if facts["replaced"] else ""
    print(
        f"{facts['file']}: {policy.name} plays {facts['game']}, {show_size(facts['bytes'])}{again}"
    )
    sizes = ", ".join(f"{name} {show_size(size)}" for name, size in facts["parts"].items())
    print(f"inside: {sizes}; bots {', '.join(facts['bots'])}")
    print("Open it in a browser, from a disk or from any server; it needs no network.")
