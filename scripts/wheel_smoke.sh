#!/usr/bin/env bash
# Installs a wheel into a bare environment and uses it from elsewhere: scripts/wheel_smoke.sh [WHEEL]
# Without WHEEL one is built first. PYTHON names the interpreter, 3.11 or later.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
wheel=${1:+$(realpath "$1")}
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
export PIP_CONSTRAINT=$root/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [[ -z $wheel ]]; then
  "$python" -m venv "$work/build"
  SPARRING_WASM=1 "$work/build/bin/python" -m pip wheel -q --no-deps -w "$work/dist" "$root"
  wheel=$(echo "$work"/dist/*.whl)
fi
echo "installing $(basename "$wheel")"
"$python" -m venv "$work/bare"
"$work/bare/bin/python" -m pip install -q "$wheel"
PATH=$work/bare/bin:$PATH
mkdir "$work/elsewhere"
cd "$work/elsewhere"

step() {
  echo "+ ${*%%$'\n'*}"
  "$@" >log 2>&1 || { cat log; echo "failed: $*" >&2; exit 1; }
}

step python -c "
import sys, sparring
from importlib.metadata import version
assert sparring.__file__.startswith(sys.prefix), sparring.__file__
assert sparring.__version__ == version('sparring'), sparring.__version__
assert 'torch' not in sys.modules
"
step python -c "
from sparring.web.description import wasm_file
assert wasm_file('skull_king').read_bytes().startswith(b'\\0asm')
"
step sparring games
step sparring check tic_tac_toe
step sparring train tic_tac_toe --updates 2 --collect.games 16 --eval.final-games 32
step sparring eval latest --games 32
step sparring resume latest --updates 3
"$work/bare/bin/python" -m pip install -q "$wheel[plot]"
step sparring plot latest
step sparring render latest --out game.png
step sparring render captain --game skull_king --out table.svg --still
test -s game.png
echo "the wheel works"
