#!/usr/bin/env bash
# Pin every package of every extra for Python 3.11 to 3.13 on all systems: requirements/*.lock.
set -eu
cd "$(dirname "$0")/.."
uv() { .venv/bin/python -m uv "$@"; }
.venv/bin/python -m pip install -q uv
common=(pip compile -q --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url --no-emit-find-links
        -c requirements/constraints.txt)
uv "${common[@]}" pyproject.toml -o requirements/core.lock
uv "${common[@]}" pyproject.toml --extra dev --extra docs -c requirements/core.lock -o requirements/dev.lock
uv "${common[@]}" pyproject.toml --extra tf -c requirements/core.lock -o requirements/tf.lock
# PyTorch only runs on the CPU here: its lock leaves out what it takes along for GPUs, and what core.lock has.
uv "${common[@]}" pyproject.toml --extra torch -c requirements/dev.lock |
    grep -vE '^(nvidia|cuda|triton)-?' | grep -vxFf requirements/core.lock > requirements/torch.lock
