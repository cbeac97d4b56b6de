"""Games in Python by name: file.py:Class. A name is loaded once, and then known to the core."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from sparring import _native
from sparring.errors import RulesError, UntrustedError, warn
from sparring.factories import absolute_name, check_factory_trusted, is_factory, load_factory
from sparring.pygames.declare import Declaration, Game, declaration_of
from sparring.pygames.failures import describe, remember
from sparring.pygames.fields import block_rows, paid_offset, shape_of
from sparring.pygames.interpreted import Interpreter
from sparring.pygames.scan import check_functions, source_hash
from sparring.pygames.views import Fields

INTERPRETED = "SPARRING_INTERPRETED"
"""Environment variable: 1 runs rules in Python by the interpreter."""
SUFFIX = " (interpreted)"
INSTALL = "pip install 'sparring[python-games]'"
INSTALL_CUDA = "pip install 'sparring[cuda-python-games]'"

_loaded: dict[str, Declaration] = {}
_runners: dict[str, Any] = {}
"""What runs each registered name: its functions live as long as the program."""


def is_python_game(word: str) -> bool:
    """Whether a name is that of rules in Python; loads them if they may be loaded."""
    if word.removesuffix(SUFFIX) in _loaded:
        return True
    if not is_factory(word):
        return False
    try:
        found = load_factory(word, "game")
    except UntrustedError:  # whoever needs the code is told
        return False
    return isinstance(found, type) and issubclass(found, Game)


def is_env(word: str) -> bool:
    """Whether a name is that of an environment's factory, and not of rules in Python."""
    return is_factory(word) and not is_python_game(word)


def is_registered(name: str) -> bool:
    """Whether a registered game has rules in Python."""
    return name.removesuffix(SUFFIX) in _loaded


def registered_name(word: str) -> str:
    """The registered name of rules in Python, loaded at need; other words stay.

    Raises UntrustedError for code that the user has not named.
    """
    if is_python_game(word):
        return register(word)
    if is_factory(word):
        check_factory_trusted(word, "game")
    return word


def register(word: str, *, interpreted: bool | None = None) -> str:
    """Make a game in Python known to the core; return the name under which it is.

    interpreted: None compiles where Numba is installed and SPARRING_INTERPRETED is not set.
    """
    plain = word.removesuffix(SUFFIX)
    name = absolute_name(plain)
    if interpreted is None:
        interpreted = word.endswith(SUFFIX)
    declared = _loaded.get(name) or load(plain, name)
    registered = name + SUFFIX * interpreted
    if registered not in _runners:
        runner = runner_of(declared, interpreted=interpreted or not may_compile(name))
        script = _native.register_script(described(declared, registered), runner.addresses)
        remember(script, declared)
        _runners[registered] = runner
    return registered


def load(word: str, name: str) -> Declaration:
    """Load and check a class."""
    cls: Any = load_factory(word, "game")
    if not (isinstance(cls, type) and issubclass(cls, Game)):
        raise RulesError(f"{word} is no sparring.Game; derive the class from it")
    declared = declaration_of(cls, name)
    check_functions([*declared.functions.values(), *declared.bots.values()])
    _loaded[name] = declared
    return declared


def declaration_called(name: str) -> Declaration:
    """The declaration of a registered name."""
    return _loaded[name.removesuffix(SUFFIX)]


def position_text(name: str, raw: bytes, viewer: int, flags: Mapping[str, Any]) -> str | None:
    """Text of a state by the rules' own function; None if they have none. viewer: -1 sees all."""
    declared = declaration_called(name)
    function = declared.host.get("text")
    if function is None:
        return None
    state = np.frombuffer(raw[: declared.state_dtype.itemsize], declared.state_dtype, 1)
    table = np.zeros(1, declared.flags_dtype)
    for word, flag in declared.flags.items():
        given = flags.get(word, flag.default)
        upper = [each.upper() for each in flag.words]
        table[word] = upper.index(given) if isinstance(given, str) else given
    views = {
        "state": Fields(state, writable=False),
        "viewer": None if viewer < 0 else viewer,
        "flags": Fields(table, writable=False),
    }
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    try:
        return str(function(*(views[each] for each in names)))
    except Exception as error:
        raise RulesError(describe(error, declared, "text")) from None


def may_compile(name: str) -> bool:
    if os.environ.get(INTERPRETED, "") not in ("", "0"):
        return False
    if find_spec("numba") is None:
        warn(f"{name} runs by the interpreter, slowly: {INSTALL} compiles its rules")
        return False
    return True


def runner_of(declared: Declaration, *, interpreted: bool) -> Any:
    if interpreted:
        return Interpreter(declared)
    from sparring.pygames.compiled import Compiled

    return Compiled(declared)


def runs_compiled(name: str) -> bool:
    """Whether a registered game runs compiled."""
    return not isinstance(_runners[name], Interpreter)


def lacks_on_gpu() -> str:
    """What rules in Python lack here for games on a GPU; "" if nothing."""
    if os.environ.get(INTERPRETED, "") not in ("", "0"):
        return f"{INTERPRETED} is set, and the interpreter runs on the CPU only"
    if find_spec("numba") is None or find_spec("numba_cuda") is None:
        return f"rules in Python need numba-cuda there: {INSTALL_CUDA}"
    return ""


def rules_on_gpu(name: str) -> Callable[[str], tuple[bytes, ...]]:
    """What compiles the rules of a registered game for GPUs; see `kernels.CompileOptions`."""
    lacks = lacks_on_gpu()
    if lacks or name.endswith(SUFFIX):
        why = lacks or "the interpreter runs on the CPU only"
        raise RulesError(
            f"{name} cannot run on a GPU: {why}; or leave its games on CPU: --pool cpu"
        )
    try:
        from sparring.pygames.on_gpu import DeviceRules
    except ImportError as missing:
        raise RulesError(
            f"{name} cannot run on a GPU: {missing}; {INSTALL_CUDA}, or --pool cpu"
        ) from None
    return DeviceRules(declaration_called(name)).code


def script_sizes_of(name: str) -> dict[str, int]:
    """Compile-time constants of a registered game for csrc/cuda/scripted.cuh."""
    declared = declaration_called(name)
    cls, bytes_used = declared.cls, declared.state_dtype.itemsize
    room = [s for s in _native.script_sizes() if s[0] >= bytes_used and s[1] >= declared.actions]
    scored = "score" in declared.functions
    sizes = {
        "BYTES": min(room)[0],
        "ACTIONS": min(room)[1],
        "ROLES": len(cls.roles),
        "PARTS": len(declared.parts),
        "ENDS": len(cls.ends),
        "COUNTERS": len(cls.counters),
        "BOTS": len(declared.bots),
        "PAID": -1 if scored else paid_offset(declared.state, declared.seats),
        "LIMITS": limit_bits(declared),
    }
    return {f"SPARRING_SCRIPT_{word}": number for word, number in sizes.items()}


def limit_bits(declared: Declaration) -> int:
    """Bit e: end e is a limit."""
    cls = declared.cls
    return sum(1 << i for i, end in enumerate(cls.ends) if end in cls.limits)


def described(declared: Declaration, name: str) -> dict[str, Any]:
    """What the core has to know of a game."""
    cls = declared.cls
    dtype = declared.state_dtype
    places: Mapping[str, Any] = dtype.fields or {}
    scored = "score" in declared.functions
    fields = [
        (
            word,
            field.dtype.name,
            int(places[word][1]),
            int(max(1, places[word][0].itemsize // field.dtype.itemsize)),
            float(field.low),
            float(field.high),
        )
        for word, field in declared.state.items()
    ]
    if not scored:
        offset = paid_offset(declared.state, declared.seats)
        fields.append(("paid", "float32", offset, declared.seats, -3.4e38, 3.4e38))
    check_room(declared, dtype.itemsize)
    counters = list(cls.counters)
    return {
        "name": name,
        "title": title_of(declared),
        "version": rules_version(declared),
        "seats": declared.seats,
        "actions": declared.actions,
        "state_bytes": dtype.itemsize,
        "paid_offset": -1 if scored else paid_offset(declared.state, declared.seats),
        "truncating": limit_bits(declared),
        "fields": fields,
        "blocks": [block_rows(word, block) for word, block in declared.blocks.items()],
        "roles": list(cls.roles),
        "role_features": [list(names) for names in cls.role_features],
        "board": list(cls.board),
        "zero_sum": bool(cls.zero_sum),
        "chance": bool(cls.chance),
        "parts": list(declared.parts),
        "weights": [w for w in declared.parts.values() for _ in cls.roles],
        "bots": ["random", *declared.bots],
        "ends": list(cls.ends),
        "counters": counters,
        "stats": [
            (stat, [counters.index(above)], [counters.index(below)], text)
            for stat, (above, below, text) in cls.stats.items()
        ],
        "action_names": [action_name(declared, i) for i in range(declared.actions)],
        "flags": [
            (
                word,
                "|".join(each.upper() for each in flag.words),
                flag.help,
                float(flag.low),
                float(flag.high),
                flag.live,
                flag.default,
            )
            for word, flag in declared.flags.items()
        ],
    }


def check_room(declared: Declaration, state_bytes: int) -> None:
    sizes = _native.script_sizes()
    if not any(state_bytes <= most and declared.actions <= acts for most, acts in sizes):
        most, acts = max(sizes)
        raise RulesError(
            f"{declared.name} has a state of {state_bytes} bytes and {declared.actions} actions; "
            f"rules in Python have room for {most} bytes and {acts} actions"
        )


def action_name(declared: Declaration, action: int) -> str:
    if "action_name" not in declared.host:
        return str(action)
    try:
        return str(declared.host["action_name"](action))
    except Exception as error:
        raise RulesError(f"{declared.name}: action_name({action}): {error}") from None


def title_of(declared: Declaration) -> str:
    text = (declared.cls.__doc__ or "").strip().splitlines()
    return text[0].rstrip(".") if text else declared.cls.__name__


def rules_version(declared: Declaration) -> int:
    """Number that changes with the rules, so that states of other rules are refused."""
    rules = [f for name, f in declared.functions.items() if name not in ("valid", "resample")]
    more = (declared.cls.version, str(declared.state_dtype), str(declared.observation_dtype))
    kinds = [
        (name, field.low, field.high, shape_of(field)) for name, field in declared.state.items()
    ]
    digest = source_hash([*rules, *check_functions(rules)], (more, kinds, declared.actions))
    return int.from_bytes(digest[:4], "little") & 0x7FFFFFFF
