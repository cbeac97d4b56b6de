"""Trainings in processes of their own: a request in JSON to each, its answer in JSON from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sides.cores import threads_for
from sparring.errors import SparringError

FOLDER = Path(__file__).resolve().parents[1]


def ask(module: str, request: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    """Run a module of benchmarks with a request that has kind, seed and threads; wait for it."""
    environment = {**os.environ, **threads_for(request["threads"]), **variables}
    path = os.pathsep.join(filter(None, (str(FOLDER), environment.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [sys.executable, "-m", module, json.dumps(request)],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={**environment, "PYTHONPATH": path},
    )
    if done.returncode:
        name = f"{request['kind']}, seed {request['seed']}"
        raise SparringError(f"{name} ended with code {done.returncode}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return {"seed": request["seed"], **answer}


def answer(work: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Do what the argument asks for, and print what came of it."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is no answer
    warnings.simplefilter("ignore")
    try:
        print(json.dumps(work(json.loads(sys.argv[1]))), file=answers, flush=True)
    except (SparringError, ImportError) as wrong:
        sys.exit(str(wrong))
