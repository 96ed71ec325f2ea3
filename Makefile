# Every target sets up what it needs in .venv; nothing has to be installed by hand but Python 3.11 to 3.13.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null && { echo $$p; break; }; done)
CACHE := .cache/models
BIN := .venv/bin
# PyTorch only exports two of the test models. TORCH=no leaves it out: their tests are skipped and say so.
TORCH ?= yes

.PHONY: demo test test-browser test-tf test-all lint types docs bench bench-latency bench-zoo bench-quality bench-report bench-tasks probes zoo zoo-int8 zoo-npu zoo-neutron zoo-search zoo-sim sim-conformance fuzz lock clean

.venv/core: requirements/core.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Vitrify needs Python 3.11, 3.12 or 3.13: install one, or say make PYTHON=/path/to/python"; exit 1; }
	@echo "setting up .venv with $(PYTHON) (once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements/core.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@touch $@

.venv/dev: .venv/core requirements/dev.lock requirements/torch.lock
	@echo "adding the test tools to .venv (once)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements/dev.lock
	@if [ "$(TORCH)" = yes ]; then $(BIN)/python -m pip install -q --disable-pip-version-check -r requirements/torch.lock; fi
	@touch $@

demo: .venv/core          ## a real model to a verified INT8 model for the i.MX 93
	@$(BIN)/python scripts/demo.py $(CACHE)

test: .venv/dev           ## the default suite
	$(BIN)/pytest -q -n 2 --dist worksteal -m "not slow"

test-browser: .venv/dev   ## the pages in Chromium; skipped, with the reason, where there is none
	$(BIN)/pytest -q -m browser tests/report

test-all: .venv/dev       ## everything, the long tests too
	$(BIN)/pytest -q -n 2 --dist worksteal
	$(MAKE) test-tf

.cache/tf/venv/complete: requirements/core.lock requirements/dev.lock requirements/tf.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Vitrify needs Python 3.11, 3.12 or 3.13: install one, or say make PYTHON=/path/to/python"; exit 1; }
	@echo "setting up .cache/tf/venv with $(PYTHON) (once, about 2 GB)"
	@mkdir -p .cache/tf
	@test -x .cache/tf/venv/bin/python || $(PYTHON) -m venv .cache/tf/venv
	@.cache/tf/venv/bin/python -m pip install -q --disable-pip-version-check -r requirements/tf.lock -r requirements/dev.lock
	@.cache/tf/venv/bin/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@touch $@

test-tf: .cache/tf/venv/complete          ## TensorFlow's models, in an environment of their own
	.cache/tf/venv/bin/python -m pytest -q -n 2 --dist worksteal tests/importers/test_tensorflow.py tests/importers/test_tensorflow_files.py

lint: .venv/dev
	$(BIN)/ruff check .

types: .venv/dev
	$(BIN)/mypy

docs: .venv/dev
	$(BIN)/python scripts/reference_docs.py docs/reference
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q --strict

bench: .venv/dev          ## side by side with the peers, each in its own environment
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/checking.py
	$(BIN)/python benchmarks/diff.py

.cache/zoo/venv/complete: requirements/zoo.txt requirements/torch.lock
	@test -n "$(PYTHON)" || { echo "Vitrify needs Python 3.11, 3.12 or 3.13: install one, or say make PYTHON=/path/to/python"; exit 1; }
	@echo "setting up .cache/zoo/venv with $(PYTHON) (once, about 2 GB)"
	@mkdir -p .cache/zoo
	@test -x .cache/zoo/venv/bin/python || $(PYTHON) -m venv .cache/zoo/venv
	@.cache/zoo/venv/bin/python -m pip install -q --disable-pip-version-check -r requirements/torch.lock -c requirements/zoo.txt
	@.cache/zoo/venv/bin/python -m pip install -q --disable-pip-version-check --no-deps -r requirements/zoo.txt
	@touch $@

zoo: .venv/core .cache/zoo/venv/complete          ## export every model of the zoo, convert and compare it: docs/zoo.md
	-@$(BIN)/python benchmarks/zoo/build.py
	@$(BIN)/python benchmarks/zoo/check.py

zoo-int8: .venv/core       ## quantize every model of the zoo, run every file: docs/zoo_int8.md
	@$(BIN)/python benchmarks/zoo/int8.py

probes: .venv/core         ## compile small models around each rule's limit: docs/rule_probes.md
	@$(BIN)/python benchmarks/probes.py

zoo-npu: .venv/core        ## fix every int8 file of the zoo for an NPU: docs/zoo_npu.md
	@$(BIN)/python benchmarks/zoo/npu.py

zoo-neutron: .venv/core    ## place every int8 file of the zoo on chips with closed compilers: docs/zoo_neutron.md
	@$(BIN)/python benchmarks/zoo/neutron.py

zoo-search: .venv/core     ## search the compiler's settings for every int8 file of the zoo: docs/zoo_search.md
	@$(BIN)/python benchmarks/zoo/search.py

zoo-sim: .venv/core        ## run the zoo's compiled files on the functional model of the NPU: docs/zoo_sim.md
	@$(BIN)/python benchmarks/zoo/simulate.py

bench-latency: .venv/core .cache/zoo/venv/complete   ## estimates against published latencies: docs/estimates.md
	$(BIN)/python benchmarks/latency/judge.py

.cache/peers/vela45/complete: .venv/core
	@echo "setting up .cache/peers/vela45 with Vela 4.5.0 (once)"
	@mkdir -p .cache/peers
	@test -x .cache/peers/vela45/bin/python || $(BIN)/python -m venv .cache/peers/vela45
	@.cache/peers/vela45/bin/python -m pip install -q --disable-pip-version-check ethos-u-vela==4.5.0
	@touch $@

sim-conformance: .venv/dev .cache/peers/vela45/complete   ## hold the NPU's functional model against the kernels: docs/npusim_conformance.md
	@$(BIN)/python benchmarks/npusim/conformance.py

bench-zoo: .venv/dev .cache/zoo/venv/complete   ## the models of `make zoo` side by side with the peers: hours at first, then kept
	$(BIN)/python benchmarks/zoo/race.py

bench-quality: .venv/dev .cache/zoo/venv/complete   ## int8 quality side by side with the peers, on the models of `make zoo`
	$(BIN)/python benchmarks/quality/bench.py

bench-report: .venv/dev   ## how long pages take to open, and how evenly their graphs move: docs/report.md
	$(BIN)/python benchmarks/report.py

bench-tasks: .venv/dev    ## task results of pretrained models in int8: docs/tasks_int8.md
	$(BIN)/python benchmarks/quality/tasks.py

fuzz: .venv/dev           ## property tests and hostile files, twenty times as long
	VITRIFY_FUZZ=20 $(BIN)/pytest -q -n 2 -m hypothesis --timeout 3600

lock: .venv/dev
	scripts/lock.sh

clean:
	rm -rf .venv build dist site .pytest_cache .mypy_cache .ruff_cache
