"""Checks job files for clusters and prints what they would start, without starting anything.

    python examples/cluster/check.py examples/cluster/*.slurm --dry-run

A key that the scheduler does not know, a script that bash cannot read, and an option of sparring
that does not exist are refused in one line, with exit code 2. It knows the keys of these files and
those that are usual beside them, not every key of a scheduler.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparring.config.options import options_of
from sparring.config.runs import ResumeConfig, TrainConfig
from sparring.errors import ConfigError, suggestion

SBATCH = frozenset(
    {"account", "array", "constraint", "cpus-per-task", "dependency", "error", "exclusive"}
    | {"export", "gpus", "gpus-per-node", "gres", "job-name", "mail-type", "mail-user", "mem"}
    | {"mem-per-cpu", "nodelist", "nodes", "ntasks", "ntasks-per-node", "output", "partition"}
    | {"qos", "requeue", "signal", "time"}
)
SWITCHES = frozenset({"exclusive", "requeue"})
"""Options of sbatch without a value."""
CONDOR = frozenset(
    {"accounting_group", "arguments", "environment", "error", "executable", "getenv", "initialdir"}
    | {"input", "kill_sig", "log", "max_retries", "notification", "output", "periodic_remove"}
    | {"request_cpus", "request_disk", "request_gpus", "request_memory", "requirements"}
    | {"should_transfer_files", "transfer_input_files", "universe", "when_to_transfer_output"}
)
NEEDED = ("executable", "request_cpus", "log")
TEMPLATE: dict[str, Any] = {"metadata": None, "spec": None}
"""None: not looked into, as Kubernetes checks it."""
GROUP: dict[str, Any] = {"rayStartParams": None, "template": TEMPLATE}
CLUSTER: dict[str, Any] = {
    "rayVersion": str,
    "authOptions": {"mode": str, "secretName": str},
    "enableInTreeAutoscaling": bool,
    "headGroupSpec": {**GROUP, "serviceType": str},
    "workerGroupSpecs": [
        {**GROUP, "groupName": str, "replicas": int, "minReplicas": int, "maxReplicas": int}
    ],
}
SPECS: dict[str, Any] = {
    "RayCluster": CLUSTER,
    "RayJob": {
        "entrypoint": str,
        "shutdownAfterJobFinishes": bool,
        "ttlSecondsAfterFinished": int,
        "activeDeadlineSeconds": int,
        "backoffLimit": int,
        "submissionMode": str,
        "runtimeEnvYAML": str,
        "rayClusterSpec": CLUSTER,
    },
}
"""Fields of KubeRay's `spec` by kind."""
CONFIGS: dict[str, Any] = {"train": TrainConfig, "resume": ResumeConfig}


def check(path: Path) -> list[str]:
    """Return the commands that a job file starts; raise for what is wrong with it."""
    kinds = {".slurm": slurm, ".sh": shell, ".sub": condor, ".yaml": kuberay, ".yml": kuberay}
    if path.suffix not in kinds:
        raise ConfigError(f"{path}: give a file that ends in {', '.join(kinds)}")
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"cannot read {path}: {why}") from None
    commands = list(kinds[path.suffix](path, text))
    ours = [command for command in commands if re.search(r"\bsparring\b", command)]
    if not ours:
        raise ConfigError(f"{path.name} starts no command of sparring")
    for command in ours:
        check_command(path, command)
    return commands


def slurm(path: Path, text: str) -> Iterator[str]:
    """Check the directives of sbatch, which end where commands begin."""
    ended = False
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("#SBATCH"):
            ended = ended or bool(line.strip() and not line.startswith("#"))
            continue
        where, given = f"{path.name}:{number}", line.removeprefix("#SBATCH").strip()
        name, equals, value = given.removeprefix("--").partition("=")
        if ended:
            raise ConfigError(f"{where}: #SBATCH after a command, which Slurm does not read")
        if not given.startswith("--") or name not in SBATCH:
            raise ConfigError(f"{where}: sbatch has no option {name!r}{suggestion(name, SBATCH)}")
        if bool(equals and value) is (name in SWITCHES):
            shape = "no value" if name in SWITCHES else f"a value, as in --{name}=VALUE"
            raise ConfigError(f"{where}: --{name} takes {shape}")
    yield from shell(path, text)


def shell(path: Path, text: str) -> Iterator[str]:
    """Let bash read a script without running it."""
    read = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    if read.returncode:
        first = (read.stderr.splitlines() or ["bash cannot read it"])[0]
        raise ConfigError(f"{path.name}: {first}")
    for line in text.replace("\\\n", " ").splitlines():
        if re.match(r"\s*(exec\s+)?(sparring|srun|ray)\b", line):
            yield line.strip().removesuffix("&").strip()


def condor(path: Path, text: str) -> Iterator[str]:
    """Check the keys of a submit file; the last line queues."""
    values: dict[str, str] = {}
    queued = 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"{path.name}:{number}"
        if found := re.fullmatch(r"queue(?:\s+(\d+))?", line.strip()):
            queued += int(found[1] or 1)
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if queued:
            raise ConfigError(f"{where}: {name} stands after queue, which does not see it")
        if not equals or name.lower() not in CONDOR:
            raise ConfigError(f"{where}: HTCondor has no {name!r}{suggestion(name, CONDOR)}")
        values[name.lower()] = value
    missing = [name for name in NEEDED if name not in values] + ["queue"] * (not queued)
    if missing:
        raise ConfigError(f"{path.name}: {missing[0]} is missing")
    arguments = values.get("arguments", "").strip('"')
    for process in range(queued):
        yield arguments.replace("$(Process)", str(process)).replace(
            "$(request_cpus)", values["request_cpus"]
        )


def kuberay(path: Path, text: str) -> Iterator[str]:
    """Check the fields of KubeRay's resources."""
    try:
        import yaml
    except ImportError:
        raise ConfigError("YAML files need PyYAML: pip install pyyaml") from None
    try:
        documents = [one for one in yaml.safe_load_all(text) if one is not None]
    except yaml.YAMLError as error:
        raise ConfigError(f"{path.name}: {' '.join(str(error).split())}") from None
    for given in documents:
        kind = str(given.get("kind")) if isinstance(given, dict) else ""
        if kind not in SPECS or given.get("apiVersion") != "ray.io/v1":
            raise ConfigError(f"{path.name}: need apiVersion ray.io/v1, kind RayJob or RayCluster")
        wanted = {"apiVersion": str, "kind": str, "metadata": None, "spec": SPECS[kind]}
        check_fields(f"{path.name}:", given, wanted)
        if "spec" not in given:
            raise ConfigError(f"{path.name}: spec is missing")
        if kind == "RayJob" and "rayClusterSpec" not in given["spec"]:
            raise ConfigError(f"{path.name}: spec.rayClusterSpec is missing")
        cluster = given["spec"].get("rayClusterSpec", given["spec"])
        if cluster.get("authOptions", {}).get("mode") != "token":
            raise ConfigError(
                f"{path.name}: sparring uses clusters with a token alone; add authOptions: "
                "{mode: token}"
            )
        if entry := given["spec"].get("entrypoint"):
            yield entry


def check_fields(where: str, given: Any, wanted: Any) -> None:
    """Refuse fields that are unknown or of another type."""
    if wanted is None:
        return
    if isinstance(wanted, type):
        if type(given) is not wanted:
            raise ConfigError(f"{where} is {given!r}, need {wanted.__name__}")
    elif isinstance(wanted, list):
        if not isinstance(given, list):
            raise ConfigError(f"{where} is no list")
        for number, one in enumerate(given):
            check_fields(f"{where}[{number}]", one, wanted[0])
    else:
        if not isinstance(given, dict):
            raise ConfigError(f"{where} holds no fields")
        for name, value in given.items():
            if name not in wanted:
                raise ConfigError(f"{where} has no {name!r}{suggestion(str(name), wanted)}")
            check_fields(
                f"{where} {name}" if where.endswith(":") else f"{where}.{name}", value, wanted[name]
            )


def check_command(path: Path, command: str) -> None:
    """Refuse commands and options of sparring that do not exist."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"{path.name}: {command!r}: {str(error).lower()}") from None
    words = words[words.index("sparring") + 1 :] if "sparring" in words else words
    if not words or words[0] not in CONFIGS:
        raise ConfigError(f"{path.name}: {command!r} is none of sparring {', '.join(CONFIGS)}")
    known = {flag for option in options_of(CONFIGS[words[0]]) for flag in option.flags}
    for word in words[1:]:
        flag = word.partition("=")[0]
        if flag.startswith("--") and flag not in known:
            raise ConfigError(
                f"{path.name}: sparring {words[0]} has no option {flag}{suggestion(flag, known)}"
            )


def main(words: list[str] | None = None) -> int:
    """Check files, and print what they would start."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--dry-run", action="store_true", help="print what would be started")
    given = parser.parse_args(words)
    try:
        for path in given.files:
            commands = check(path)
            print(f"{path}: fits")
            for command in commands if given.dry_run else ():
                print(f"  {command}")
    except ConfigError as error:
        print(f"check.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
