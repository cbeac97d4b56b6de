"""Errors of custom environments, reported in one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from sparring.errors import USER_CODE_ERRORS, ConfigError, EnvError, SparringError
from sparring.factories import describe_error


@contextmanager
def env_errors(doing: str, advice: str = "") -> Iterator[None]:
    """Turn any exception of an environment, also `sys.exit`, into an `EnvError`.

    doing: the start of the message. advice: its end.
    """
    try:
        yield
    except (ConfigError, EnvError):
        raise
    except SparringError as wrong:  # a result of the environment was refused
        raise EnvError(str(wrong)) from wrong
    except USER_CODE_ERRORS as wrong:
        raise EnvError(f"{doing}: {describe_error(wrong)}{advice}") from wrong


@contextmanager
def restored_folder() -> Iterator[None]:
    """Return to the current folder afterwards, if an environment changes it."""
    try:
        folder = os.open(os.curdir, os.O_RDONLY)
    except OSError:  # deleted or unreadable
        yield
        return
    try:
        yield
    finally:
        os.fchdir(folder)
        os.close(folder)


def empty_mask_error(where: str, seat: object) -> EnvError:
    return EnvError(
        f"{where}: seat {seat} is to act and its action mask allows nothing; end the episode "
        "there, or allow an action that passes"
    )


def first_line(wrong: BaseException) -> str:
    """The original error of an environment, in one line."""
    raised = wrong.__cause__ if isinstance(wrong, EnvError) and wrong.__cause__ else wrong
    return str(raised) if isinstance(raised, SparringError) else describe_error(raised)
