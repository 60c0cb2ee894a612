# make run    sets everything up, compiles examples/gelu.hlo, shows every stage and runs the kernel
# make test   sets everything up and runs all tests
# make help   every target
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TESTS_STAMP := $(VENV)/.installed-for-tests
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

.PHONY: help run install tools test tiny long bounds corpus mpi modules programs c-programs models cpu cpu-features kernels reduction-schedules digests toolchains fuzz mutants lint filecheck-subprocess bless docs pictures notebook bench lab torch gpu gpu-kit gpu-rehearsal code-quality compile-time soak floors clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 24

run: $(STAMP) tools  ## compile examples/gelu.hlo, write every stage to build/gelu, run the kernel, compare with NumPy
	@$(BIN)/xla-emitters run examples/gelu.hlo --show-stages --print-ir-tree-dir build/gelu

install: $(STAMP) tools  ## .venv with xla-emitters, and LLVM's tools where this user may install them
	@$(BIN)/xla-emitters doctor >build/doctor.txt || echo "note: no PTX can be made here, all else works; what is missing, and what installs it: $(BIN)/xla-emitters doctor"

# LLVM 22's tools come from the distribution, for the user's own way to PTX and for --keep-intermediates. llvmlite, which is LLVM 22 too and came
# with the Python packages, makes the PTX without them; where neither is, PTX is left out: `run` says so.
tools: $(STAMP)
	@mkdir -p build; \
	if { command -v mlir-opt-22 || [ -x /usr/lib/llvm-22/bin/mlir-opt ] || [ -n "$$XLA_EMITTERS_MLIR_OPT" ]; } >/dev/null 2>&1; then exit 0; fi; \
	if { command -v apt-get && { [ -z "$(SUDO)" ] || sudo -n true || { [ -t 0 ] && command -v sudo; }; }; } >/dev/null 2>&1; then \
	  echo "installing mlir-22-tools and llvm-22"; \
	  { $(SUDO) apt-get update -q && $(SUDO) env DEBIAN_FRONTEND=noninteractive \
	      apt-get install -q -y --no-install-recommends mlir-22-tools llvm-22; } >build/apt.log 2>&1 || true; \
	fi

$(STAMP): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) is missing: apt-get install python3 python3-venv" >&2; exit 4; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is needed; this is $$($(PYTHON) --version)" >&2; exit 4; }
	@[ -x $(BIN)/pip ] || $(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { \
	  rm -rf $(VENV); \
	  if command -v apt-get >/dev/null && { [ -z "$(SUDO)" ] || command -v sudo >/dev/null; }; then \
	    echo "installing python3-venv"; \
	    $(SUDO) apt-get update -q >/dev/null && $(SUDO) env DEBIAN_FRONTEND=noninteractive \
	      apt-get install -q -y --no-install-recommends python3-venv >/dev/null && $(PYTHON) -m venv $(VENV); \
	  else echo "error: $(PYTHON) has no venv module: apt-get install python3-venv" >&2; exit 4; fi; }
	@echo "installing Python packages into $(VENV)"
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[ptxas]'
	@# Bytecode: the first command does not wait for it, wherever it may write.
	@$(BIN)/python -m compileall -q xla_emitters
	@touch $@

# What only tests, documentation and the notebook need comes later: the first run waits for less.
$(TESTS_STAMP): $(STAMP)
	@echo "installing what tests need into $(VENV)"
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[dev,docs,lsp,notebook,prove,ptxas]'
	@touch $@

# Arrays that were freed stay with the process: to give them back and take them again is half of the system's time.
KEEP_MEMORY := MALLOC_TOP_PAD_=67108864 MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=4294967296
PYTEST = $(KEEP_MEMORY) $(BIN)/python -m pytest -n auto --dist worksteal

# The type checker takes a minute of one core: it runs beside the tests.
test: install $(TESTS_STAMP)  ## everything: lint, types, unit, FileCheck and numeric tests
	@mkdir -p build; $(MAKE) --no-print-directory lint >build/lint.txt 2>&1 & lint=$$!; \
	$(PYTEST); tests=$$?; \
	wait $$lint; wrong=$$?; cat build/lint.txt; exit $$((tests ? tests : wrong))

tiny: $(TESTS_STAMP)  ## one fast check of every part, under 3 s
	@PYTHONDONTWRITEBYTECODE= PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(BIN)/python -m pytest -m tiny --assert=plain -p no:cacheprovider $$(grep -rl --include='test_*.py' 'mark\.tiny' tests)

long: install $(TESTS_STAMP)  ## the cases that `make test` leaves out
	@$(PYTEST) -m long

corpus: install $(TESTS_STAMP)  ## all 410 fusions of the corpus: numbers at every stage on whole grids, launches, PTX for four architectures (CORPUS="loop/ --executor dask://HOST:8786")
	@PYTHONPATH=tests $(BIN)/python -m runtime.corpus $(CORPUS)

mpi: install $(TESTS_STAMP)  ## the programs for 2, 4 and 8 devices, one process a device over MPI, against JAX (needs mpirun and the extra [mpi])
	@for count in 2 4 8; do OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PYTHONPATH=tests mpirun --oversubscribe -n $$count $(BIN)/python -m runtime.mpi_programs || exit 1; done

modules: install $(TESTS_STAMP)  ## 140 modules of 70 JAX programs, as XLA optimizes them, whole: steps, bytes, peak memory, numbers (MODULES="softmax rnn")
	@PYTHONPATH=tests $(BIN)/python -m runtime.modules_table $(MODULES) --jobs 2

programs: install $(TESTS_STAMP)  ## all programs with unknown sizes (134), compiled once each, at up to six shapes, against JAX's values (PROGRAMS="rope layer")
	@PYTHONPATH=tests $(BIN)/python -m runtime.programs_table $(PROGRAMS)

c-programs: install $(TESTS_STAMP)  ## all programs as C: the calls and bits of their host program in the executor; those that C lacks a function for (C_PROGRAMS="rope")
	@PYTHONPATH=tests $(BIN)/python -m runtime.c_programs $(C_PROGRAMS)

models: install $(TESTS_STAMP)  ## a decoder, BERT, ResNet-18, a U-Net's level, a mixture of experts: compiled once, beside JAX, which it needs (MODELS="decoder")
	@PYTHONPATH=tests:. $(BIN)/python -m runtime.models_table $(MODELS)

cpu: install  ## 30 programs of unknown size at real sizes on the CPU, warm, beside JAX, which it needs; the call itself, a new size (CPU="softmax layer")
	@$(BIN)/python -m benchmarks.cpu $(CPU)

cpu-features: install $(TESTS_STAMP)  ## all programs as machine code for eight CPUs: run at three where this machine can, else made; ten minutes (CPU_FEATURES="rope")
	@PYTHONPATH=tests $(BIN)/python -m runtime.cpu_features_table $(CPU_FEATURES)

soak: install $(TESTS_STAMP)  ## eight threads call one program at random sizes for ten minutes (SOAK="--seconds 60 --rate 400")
	@PYTHONPATH=tests $(BIN)/python -m runtime.soak $(SOAK)

kernels: install $(TESTS_STAMP)  ## the kernels of all programs at every stage, assembled for four chips (KERNELS="rope --no-ptx")
	@PYTHONPATH=tests $(BIN)/python -m runtime.kernels_table $(KERNELS)

reduction-schedules: install $(TESTS_STAMP)  ## each schedule of reductions at 2,709 sizes, under the sanitizer: starts, races, bounds (SCHEDULES="row1 10")
	@PYTHONPATH=tests $(BIN)/python -m runtime.reduction_schedules $(SCHEDULES)

bounds: install $(TESTS_STAMP)  ## are right kernels within the bounds, and wrong ones not? 1,000 random chains (BOUNDS="--chains 100")
	@PYTHONPATH=tests $(BIN)/python -m runtime.bounds $(BOUNDS)

digests: install $(TESTS_STAMP)  ## is the PTX of the corpus what it was? (DIGESTS=--write records it)
	@PYTHONPATH=tests $(BIN)/python -m runtime.digests $(DIGESTS)

toolchains: install $(TESTS_STAMP)  ## do llvmlite and mlir-opt make the same PTX of the corpus? (TOOLCHAINS="--every 4 --target sm_100")
	@PYTHONPATH=tests $(BIN)/python -m runtime.toolchains $(TOOLCHAINS)

fuzz: install $(TESTS_STAMP)  ## 2,000 random fusions: numbers at every stage, PTX through ptxas for two architectures (FUZZ="--first 5000 --cases 100")
	@PYTHONPATH=tests $(BIN)/python -m runtime.fuzz $(FUZZ)

floors: $(TESTS_STAMP)  ## the lowest and the newest versions of the dependencies, in fresh environments (FLOORS="python3.12 python3.13")
	@PYTHONPATH=tests:. $(BIN)/python -m runtime.floors $(FLOORS)

mutants: install $(TESTS_STAMP)  ## what the tests do not see: 300 changes of the source, each against the tests nearest to it (MUTANTS="--seed 1 xla_emitters/rewrite")
	@PYTHONPATH=tests $(BIN)/python -m runtime.mutants $(MUTANTS)

lint: $(TESTS_STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright

filecheck-subprocess: install $(TESTS_STAMP)  ## the FileCheck suite and the lines of the documentation through the installed console scripts, as real processes
	@XLA_EMITTERS_TEST_SUBPROCESS=1 $(BIN)/python -m pytest tests/filecheck tests/unit/test_docs.py -n auto

bless: install $(TESTS_STAMP)  ## write the listings marked BLESSED in tests/filecheck anew; read the change
	@XLA_EMITTERS_TEST_BLESS=1 $(BIN)/python -m pytest tests/filecheck -n auto
	@git --no-pager diff --stat -- tests/filecheck

docs: install $(TESTS_STAMP)  ## build the documentation into build/site
	@DISABLE_MKDOCS_2_WARNING=true $(BIN)/python -m mkdocs build --strict --quiet --site-dir build/site
	@echo "build/site/index.html"

pictures: install $(TESTS_STAMP)  ## docs/pictures anew, in headless Chromium by chromedriver; compare needs the extra 'xla' (PICTURES="show_code show_diff")
	@$(BIN)/python docs/pictures.py $(PICTURES)

NOTEBOOK ?= 01

notebook: install $(TESTS_STAMP)  ## open a notebook in a browser: NOTEBOOK=02 a transpose, NOTEBOOK=03 a reduction, NOTEBOOK=04 a program
	@$(BIN)/marimo edit notebooks/$(NOTEBOOK)_*.py

bench: install  ## all tables: compile time (against the real XLA's where the extra 'xla' is installed), growth, maps, executor
	@for table in compile_time growth indexing executor; do $(BIN)/python -m benchmarks.$$table || exit; echo; done

compile-time: install  ## warm compile time over the corpus against the real XLA's, by kind, and the share of each pass (needs the extra 'xla'; TIMES="loop --every 10")
	@$(BIN)/python -m benchmarks.corpus_compile_time $(TIMES)

NAME ?= prices

lab: install $(TESTS_STAMP)  ## a long experiment: NAME=prices, expected times beside an H200's (NAME="prices --fit": the constants from half of the rows); NAME=ptx, all PTX on a CPU, XLA's too, and damaged texts (NAME="ptx corpus --every 10"); NAME=cupy_names, what is called of CuPy beside a real one
	@$(BIN)/python -m lab.$(NAME)

# PyTorch is in a folder of its own: its packages are large, and only this target needs them. The build for CPUs has its own index.
TORCH := build/torch
TORCH_PACKAGES ?= torch==2.13.0+cpu torchax==0.0.13 sympy mpmath networkx filelock fsspec jinja2 markupsafe typing_extensions
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

torch: install $(TESTS_STAMP)  ## PyTorch modules: the tests that need PyTorch, and twelve models at four shapes each beside eager PyTorch (MODELS="lstm unet")
	@[ -e $(TORCH)/.installed ] || { echo "installing PyTorch for CPUs into $(TORCH)"; \
	  $(BIN)/pip install -q --disable-pip-version-check -e '.[jax]' && \
	  $(BIN)/pip install -q --disable-pip-version-check --no-deps --target $(TORCH) --extra-index-url $(TORCH_INDEX) $(TORCH_PACKAGES) && touch $(TORCH)/.installed; }
	@JAX_PLATFORMS=cpu PYTHONPATH=$(TORCH):. $(BIN)/python -m pytest -W ignore tests/unit/explore/from_torch
	@JAX_PLATFORMS=cpu PYTHONPATH=$(TORCH):. $(BIN)/python -W ignore -m lab.torch_models $(MODELS)

GPU_OUT ?= build/gpu-out

gpu: install $(TESTS_STAMP)  ## on a machine with a GPU: numbers, kernels and times beside XLA's, sanitizers; rows in build/gpu-out (ONLY="numbers times")
	@$(MAKE) --no-print-directory gpu-kit
	@mkdir -p $(GPU_OUT); OUT=$(abspath $(GPU_OUT)) PATH=$(abspath $(BIN)):$$PATH bash .gpu/all.sh

gpu-kit: install $(TESTS_STAMP)  ## the same as one folder, .gpu, for a machine with a GPU and no network: there, bash .gpu/all.sh
	@PATH=$(abspath $(BIN)):$$PATH bash lab/gpu/pack.sh

REHEARSE ?= program

gpu-rehearsal: install $(TESTS_STAMP)  ## the kit without a GPU: kernels do nothing, all else runs; which programs leave work to the host? (REHEARSE="2*fusion")
	@mkdir -p build/rehearsal; GPU_REHEARSAL=1 PYTHONPATH=lab/gpu/rehearsal:. GPU_SMALL=1 GPU_NO_TIMES=1 JAX_PLATFORMS=cpu GPU_HERE=$(abspath build/rehearsal) GPU_PROJECT=$(abspath .) \
	  $(BIN)/python lab/gpu/drive.py build/rehearsal 1800 2 $(REHEARSE)

KINDS ?= loop
code-quality: install  ## machine code against the real XLA's over KINDS of the corpus (needs the extra 'xla')
	@$(BIN)/python -m benchmarks.code_quality $(KINDS)

clean:  ## remove everything that make has made
	rm -rf $(VENV) build xe-dump *.egg-info .pytest_cache .ruff_cache .hypothesis
