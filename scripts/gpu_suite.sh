#!/usr/bin/env bash
# Builds, runs all GPU tests and all GPU benchmarks, and writes one JSON: scripts/gpu_suite.sh [OUT]
# PYTHON names an interpreter that already has the dependencies; otherwise .venv is made.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-}
if [[ -z ${PYTHON:-} ]]; then
  make install
  .venv/bin/python -m pip install -q -c constraints.txt -e '.[cuda]' --no-build-isolation \
    -C cmake.define.SPARRING_TEST_GAMES=ON
  PYTHON=.venv/bin/python
fi
if ! "$PYTHON" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; then
  echo "torch sees no GPU here: the GPU tests and benchmarks are skipped" >&2
  exit 0
fi
"$PYTHON" -m pytest -q -n "${JOBS:-$(nproc)}" --dist worksteal --durations 10 tests/core tests/cuda
"$PYTHON" benchmarks/gpu.py ${out:+--out "$out"}
