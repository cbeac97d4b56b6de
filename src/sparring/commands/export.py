"""`sparring export`: write a network as ONNX, checked against torch, or as web pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sparring.commands.shared.players import print_origin
from sparring.commands.shared.printing import ProgressBar, print_json
from sparring.config.commands import ExportConfig
from sparring.errors import ConfigError
from sparring.machine import format_bytes
from sparring.nets.array_net import ArrayNet
from sparring.nets.policy import Policy
from sparring.output_files import check_file, writing
from sparring.store.files import write_atomic
from sparring.store.lookup import find_policy
from sparring.store.policies import load_policy
from sparring.web.agent_page import MARK, agent_page
from sparring.web.site import write_site

TORCHSCRIPT = (".pt", ".pth", ".ts", ".torchscript")
LOOK = 4096
"""Bytes at the start of a page that contain its marker."""


def run(config: ExportConfig) -> int:
    refuse_torchscript(config.onnx)
    if config.site:
        return export_site(config)
    if not config.onnx and not config.html:
        raise ConfigError(
            "nothing to write: give --onnx agent.onnx, --html agent.html or both, or --site folder"
        )
    if config.onnx:
        check_file(config.onnx, "--onnx")
        from sparring.commands.shared import onnx_file  # with torch, which a page does not need

        onnx_file.require_extra()
    if config.html:
        check_page(Path(config.html))
    find_policy(config.policy)
    with ProgressBar("exporting", 1 + 2 * bool(config.onnx) + bool(config.html)) as steps:
        steps.next("loading")
        policy = load_policy(config.policy, game=config.game)
        print_origin(config.policy, policy)
        network = size_of(policy)
        page: dict[str, Any] = {}
        if config.html:
            steps.next("page")
            page = write_page(policy, config.policy, Path(config.html))
        onnx = onnx_file.write_onnx(policy, Path(config.onnx), steps) if config.onnx else {}
    if config.json:
        print_json(
            {"policy": policy.name, "network": network, **onnx, **({"html": page} if page else {})}
        )
        return 0
    print(f"{policy.name}: {network_line(network)}")
    if onnx:
        onnx_file.print_onnx(policy, onnx)
    if page:
        print_page(policy, page)
    return 0


def size_of(policy: Policy) -> dict[str, Any]:
    """Return the number of parameters, and of products per decision, which torch counts."""
    if isinstance(policy.net, ArrayNet):
        return {"parameters": policy.net.parameter_count, "macs": None}
    from sparring.nets.sizes import count

    counts = count(policy.net)
    return {"parameters": counts.parameters, "macs": counts.macs}


def network_line(network: dict[str, Any]) -> str:
    macs = "" if network["macs"] is None else f", {network['macs']:,} multiply-accumulates"
    return f"{network['parameters']:,} parameters{macs}{' per decision' if macs else ''}"


def refuse_torchscript(name: str) -> None:
    if Path(name).suffix.lower() in TORCHSCRIPT:
        raise ConfigError(
            f"--onnx {name}: TorchScript is deprecated and not written; name an ONNX file, "
            "such as agent.onnx, which C++ and Python read with onnxruntime"
        )


# Pages that play by themselves


def export_site(config: ExportConfig) -> int:
    """Write a static site; print its files with their sizes."""
    if config.onnx or config.html or config.game:
        raise ConfigError("--site is written alone; give --onnx, --html and --game without it")
    with ProgressBar("exporting", 1) as steps:
        steps.next("site")
        facts = write_site(Path(config.site), [config.policy])
    if config.json:
        print_json(facts)
        return 0
    again = ", in place of the one before" if facts["replaced"] else ""
    print(f"{facts['folder']}: {', '.join(facts['games'])}{again}")
    for name, size in facts["files"].items():
        print(f"  {name} {format_bytes(size)}")
    print(f"Look at it: python -m http.server -d {facts['folder']}; any web space can hold it.")
    return 0


def check_page(target: Path) -> bool:
    """Refuse a path that may not be written; return whether it replaces an agent page."""
    check_file(target, "--html", suffixes=(".html", ".htm"))
    if not target.exists():
        return False
    try:
        with target.open("rb") as file:
            ours = MARK.encode() in file.read(LOOK)
    except OSError as error:
        raise ConfigError(f"--html {target}: {error.strerror}; choose another") from None
    if not ours:
        raise ConfigError(f"{target} exists and is no agent page of sparring; choose another name")
    return True


def write_page(policy: Policy, word: str, target: Path) -> dict[str, Any]:
    """Write the page atomically; return facts about it."""
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
    again = ", in place of the one before" if facts["replaced"] else ""
    size = format_bytes(facts["bytes"])
    print(f"{facts['file']}: {policy.name} plays {facts['game']}, {size}{again}")
    sizes = ", ".join(f"{name} {format_bytes(size)}" for name, size in facts["parts"].items())
    print(f"inside: {sizes}; bots {', '.join(facts['bots'])}")
    print("Open it in a browser, from a disk or from any server; it needs no network.")
