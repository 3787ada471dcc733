# lagcast. `make` alone prints the targets; hook, CI and hands call the same ones.
.DEFAULT_GOAL := help
SHELL := /bin/sh
BIN := .venv/bin
INSTALLED := .venv/.installed
READY := .venv/.ready
# Images of containers set it; then each of the hundred processes of the tests would compile every source anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo fmt lint check test test-fast test-spark test-live-kafka test-live-kubernetes test-image test-browser test-slow bench bench-decisions bench-families bench-forecasts bench-value bench-stream bench-nothing-set bench-scrapes bench-decision-time bench-fleet bench-fleet-spark bench-features bench-readers bench-pages bench-start bench-collection bench-live-latency bench-rebalances bench-streams bench-scalers bench-failover lab lab-kubernetes lab-discovery first-five-minutes soak docs page-picture sbom lock clean

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## install everything into .venv, pinned and hashed (once; a second run is instant)

$(INSTALLED): requirements/dev.txt requirements/bootstrap.txt pyproject.toml scripts/setup
	@scripts/step setup scripts/setup
	@touch $@

$(READY): $(INSTALLED)
	@PYTHONPATH=. scripts/step loops $(BIN)/python scripts/compile_loops.py
	@touch $@

demo: $(READY) ## run the whole pipeline on a generated workload: no Kafka, no cluster, no Java needed
	@$(BIN)/lagcast demo

fmt: $(INSTALLED) ## format the code and mend what ruff can mend
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

# Steps run one after the other, each of them also after one that failed: what fails fastest comes first. The types take
# one process long where nothing is cached, as does compiling the loops: both at the same time.
STEPS := $(BIN)/python scripts/run_steps.py
LINT := \
	--along mypy '$(BIN)/mypy --no-error-summary' \
	--step format '$(BIN)/ruff format --check --quiet' \
	--step ruff '$(BIN)/ruff check --quiet' \
	--step imports '$(BIN)/lint-imports --no-logo' \
	--step audit '$(BIN)/python scripts/audit.py'
# Without --quiet, which would hide the warnings from --strict too. The notice is about a successor of mkdocs.
SITE := --step site 'NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict'
LOOPS := --step loops 'PYTHONPATH=. $(BIN)/python scripts/compile_loops.py'

# What needs a JVM, a broker or a cluster of its own waits most of the time, and stays in one process by its file: there
# it is started once. The slow tests that only compute take what the timed ones leave: three quarters of two cores. Those
# with limits in seconds run before, at full priority.
# A JVM of a test lives for a minute: the quick compiler alone took 73 s instead of 92 for 32 tests of Spark, and
# expressions that Spark does not compile saved another quarter. The demo and tests/spark_features/test_transforms.py
# compile them, as Spark does by default. With an archive of its classes it starts in half the time.
INTERPRETED := -Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN
CLASSES := $(CURDIR)/.venv/spark-classes.jsa
QUICK := SPARK_SUBMIT_OPTS="-XX:TieredStopAtLevel=1 $(INTERPRETED) -XX:SharedArchiveFile=$(CLASSES)"
LIVE := spark or kafka or kubernetes or postgres or image or browser
# Each process of a run imports and reads whatever it could have to run, 30 s of processor time for all there is.
LIVE_FOLDERS := tests/cli tests/live tests/spark_features
PYTEST := $(BIN)/pytest -q
WITHOUT_DOCTESTS := -o addopts="--import-mode=importlib --strict-markers --strict-config"
FAST_TESTS := --step fast-tests '$(PYTEST) -n 2 -m "not ($(LIVE)) and not slow"'
LIMITED_TESTS := --step limited-tests '$(PYTEST) $(WITHOUT_DOCTESTS) -n 2 -m "slow and alone and not ($(LIVE))" tests'
SLOW_TESTS := slow-tests '$(PYTEST) $(WITHOUT_DOCTESTS) -n 2 -m "slow and not alone and not ($(LIVE))" --durations=15 tests'
LIVE_PYTEST := $(QUICK) $(PYTEST) $(WITHOUT_DOCTESTS) --durations=15 $(LIVE_FOLDERS)
LIVE_TESTS := \
	--live live-tests '$(LIVE_PYTEST) -n 3 --dist loadfile --no-loadscope-reorder -m "($(LIVE)) and not alone"' \
	--live timed-tests '$(LIVE_PYTEST) -m "($(LIVE)) and alone"'
ARCHIVE := --along spark-classes '$(MAKE) --no-print-directory $(CLASSES)'
PARTS := --beside parts 'PYTHONPATH=. $(BIN)/python scripts/build_parts.py'

lint: $(INSTALLED) ## formatting, ruff, import contracts, mypy --strict
	@$(STEPS) $(LINT)

$(CLASSES): $(INSTALLED) scripts/spark_classes.py
	@$(QUICK) PYTHONPATH=. scripts/step spark-classes $(BIN)/python scripts/spark_classes.py $@

check: $(INSTALLED) ## lint, the site of docs/ and the fast tests, before each commit
	@$(STEPS) $(LINT) $(SITE) $(LOOPS) $(FAST_TESTS)

test: $(INSTALLED) ## lint and every test there is; live tests are skipped where their tools are missing, unless CI=true
	@$(STEPS) $(PARTS) $(ARCHIVE) $(LINT) $(SITE) $(LOOPS) $(FAST_TESTS) $(LIMITED_TESTS) --under $(SLOW_TESTS) $(LIVE_TESTS)

test-fast: $(READY) ## tests that need no JVM, no broker, no cluster and no patience
	@$(STEPS) $(LOOPS) $(FAST_TESTS)

test-spark: $(READY) ## the features job on a local JVM
	@scripts/step spark-tests $(BIN)/pytest -q -m "spark"

test-live-kafka: $(READY) ## against a real Kafka broker (needs Java and Maven; for the exporters of Prometheus cargo and apt-get)
	@scripts/step kafka-tests $(BIN)/pytest -q -m "kafka"

test-live-kubernetes: $(READY) ## the cluster's side and its chart against a real Kubernetes control plane (needs Go; builds it and Helm once)
	@scripts/step kubernetes $(BIN)/pytest -q -m "kubernetes"

test-image: $(READY) ## both images, built and run with a read-only root (needs root and apt-get; no container engine)
	@scripts/step image-tests $(BIN)/pytest -q -m "image"

test-browser: $(READY) ## every page in a real browser; its pictures are then in build/screenshots (needs chromium, or apt-get)
	@scripts/step browser-tests $(BIN)/pytest -q -m "browser"

test-slow: $(READY) ## the tests that take more than a few seconds, without JVM, broker and cluster
	@$(STEPS) $(LOOPS) $(LIMITED_TESTS) --step $(SLOW_TESTS)

bench: $(READY) ## forecasters and policies on the traces of a folder: make bench TRACES=DIR
	@test -d "$(TRACES)" || { echo "name a folder of traces: make bench TRACES=DIR" >&2; exit 2; }
	@$(BIN)/python -m benchmarks.forecasts --traces "$(TRACES)"
	@$(BIN)/python -m benchmarks.forecasts --page build/forecasts.json
	@$(BIN)/python -m benchmarks.decisions.league --traces "$(TRACES)"

bench-decisions: OUT := build/decisions.json
bench-families: OUT := build/families.json
bench-forecasts: OUT := build/forecasts.json
ORIGINS := 50
GROUPS := 20
SEEDS := 5
DRAWS := 50
JOBS := 2

bench-decisions: $(READY) ## every policy in every world, as JSON: make bench-decisions TRACES=DIR OUT=FILE SEEDS=5 JOBS=2
	@$(BIN)/python -m benchmarks.decisions $(if $(TRACES),--traces "$(TRACES)") --out "$(OUT)" --seeds $(SEEDS) --jobs $(JOBS)

bench-families: $(READY) ## lagcast and simple scalers on families of generated loads: make bench-families DRAWS=50 OUT=FILE JOBS=2
	@$(BIN)/python -m benchmarks.decisions.families --out "$(OUT)" --draws $(DRAWS) --jobs $(JOBS)

bench-forecasts: $(READY) ## every forecaster on every load, as JSON: make bench-forecasts TRACES=DIR OUT=FILE ORIGINS=50 JOBS=2
	@$(BIN)/python -m benchmarks.forecasts $(if $(TRACES),--traces "$(TRACES)") --out "$(OUT)" --origins $(ORIGINS) --jobs $(JOBS)

bench-stream: $(READY) ## seconds from a sample file to its rows in the feature table, while they are followed
	@$(BIN)/python -m benchmarks.speed.stream_latency

bench-value: $(READY) ## what better forecasts could still save, in replayed money: make bench-value TRACES=DIR SEEDS=3 JOBS=2
	@$(BIN)/python -m benchmarks.decisions.value $(if $(TRACES),--traces "$(TRACES)") --seeds $(SEEDS) --jobs $(JOBS)

bench-nothing-set: SEEDS := 3
bench-nothing-set: $(READY) ## what it costs to set nothing but bounds: make bench-nothing-set TRACES=DIR SEEDS=3 JOBS=2
	@$(BIN)/python -m benchmarks.decisions.nothing_set $(if $(TRACES),--traces "$(TRACES)") --seeds $(SEEDS) --jobs $(JOBS)

bench-scrapes: $(READY) ## what it costs to see a group through Prometheus' scrapes instead of Kafka itself
	@$(BIN)/python -m benchmarks.decisions.scrapes

bench-decision-time: GROUPS := 1000
bench-decision-time: OUT := build/decision-time.json
bench-decision-time: $(READY) ## how long a decision takes, by partitions, horizon, scenarios and groups: make bench-decision-time GROUPS=1000 OUT=FILE
	@$(BIN)/python -m benchmarks.speed.decision_time --groups $(GROUPS) --out "$(OUT)"

bench-fleet: GROUPS := 1000
bench-fleet: MINUTES := 5
bench-fleet: WEEKS := 0
bench-fleet: OUT := build/fleet.json
bench-fleet: $(READY) ## what 1,000 groups cost one recommender, on a real Kafka: make bench-fleet GROUPS=1000 OUT=FILE MINUTES=5 WEEKS=4
	@$(BIN)/python -m benchmarks.fleet --groups $(GROUPS) --out "$(OUT)" --minutes $(MINUTES) --weeks $(WEEKS)

ROWS := 50000000
bench-features: OUT := build/features.json
bench-features: $(READY) ## the features job beside DuckDB, which does the same work: make bench-features ROWS=50000000 OUT=FILE
	@$(BIN)/python -m benchmarks.speed.features --rows $(ROWS) --out "$(OUT)"

bench-fleet-spark: OUT := build/fleet-spark.json
bench-fleet-spark: GROUPS := 10000
WORKERS := 3
HOURS := 1
FORECASTS := 0
bench-fleet-spark: $(READY) ## how long a fleet takes on a Spark cluster that it starts: make bench-fleet-spark GROUPS=10000 WORKERS=3 HOURS=1 OUT=FILE, or FORECASTS=10000 for weeks ahead
	@$(BIN)/python -m benchmarks.speed.fleet_spark --groups $(GROUPS) --workers $(WORKERS) --hours $(HOURS) --out "$(OUT)" --forecasts $(FORECASTS)

bench-readers: GROUPS := 3000
bench-readers: READERS := 100
bench-readers: OUT := build/readers.json
bench-readers: $(READY) ## what 100 readers of every route cost the loop at 3,000 groups: make bench-readers GROUPS=3000 READERS=100 OUT=FILE
	@$(BIN)/python -m benchmarks.speed.readers --groups $(GROUPS) --readers $(READERS) --out "$(OUT)"

bench-pages: GROUPS := 15000
bench-pages: OUT := build/pages.json
bench-pages: $(READY) ## how long the server takes for each page, beside its bar: make bench-pages GROUPS=15000 STORE=URL OUT=FILE
	@$(BIN)/python -m benchmarks.speed.pages --groups $(GROUPS) $(if $(STORE),--store "$(STORE)") --out "$(OUT)"

bench-start: $(READY) ## what lagcast costs to start and to keep, for one group with a day of rows
	@$(BIN)/python -m benchmarks.speed.start

bench-collection: $(READY) ## how long a round of the collector takes, over 1,000 groups of a real Kafka that it starts
	@$(BIN)/python -m benchmarks.speed.collection --groups 1000

bench-live-latency: $(READY) ## from a sample to the published recommendation, on a real Kafka: make bench-live-latency GROUPS=20
	@$(BIN)/python -m benchmarks.speed.live_latency --groups $(GROUPS)

bench-rebalances: OUT := build/rebalances.json
ROUNDS := 4
bench-rebalances: $(READY) ## what rebalances stop and repeat, on a real Kafka: make bench-rebalances OUT=FILE ROUNDS=4
	@$(BIN)/python -m benchmarks.rebalances --out "$(OUT)" --rounds $(ROUNDS)

bench-streams: OUT := build/rebalances-streams.json
bench-streams: ROUNDS := 1
bench-streams: $(READY) ## the same of a Kafka Streams application with state: make bench-streams OUT=FILE ROUNDS=1
	@$(BIN)/python -m benchmarks.rebalances.streams --out "$(OUT)" --rounds $(ROUNDS)

bench-scalers: $(READY) ## what it costs to update 1,000 ConsumerGroupScalers, on a real control plane that it starts
	@$(BIN)/python -m benchmarks.speed.scalers --objects 1000

bench-failover: $(READY) ## how long no recommender leads after a leader was killed, on a real control plane that it starts
	@$(BIN)/python -m benchmarks.speed.failover --leases 20 --kills 10

PROTOCOL := cooperative
MINUTES := 5
lab: $(READY) ## scalers on a real Kafka with real replicas: make lab PROTOCOL=cooperative MINUTES=5
	@$(BIN)/python -m benchmarks.lab.processes --protocol $(PROTOCOL) --minutes $(MINUTES)

lab-kubernetes: OUT := build/lab-kubernetes.json
lab-kubernetes: MINUTES := 4
lab-kubernetes: $(READY) ## autoscalers on a real Kafka and a real control plane: make lab-kubernetes OUT=FILE MINUTES=4
	@$(BIN)/python -m benchmarks.lab.kubernetes --out "$(OUT)" --protocol $(PROTOCOL) --minutes $(MINUTES)

soak: OUT := build/soak.json
soak: MINUTES := 30
soak: GROUPS := 300
soak: SEED := 1
soak: $(READY) ## a simulated day of 300 groups beside Kafka and PostgreSQL, with faults at random: make soak MINUTES=30 SEED=1 GROUPS=300
	@$(BIN)/python -m benchmarks.soak --out "$(OUT)" --minutes $(MINUTES) --seed $(SEED) --groups $(GROUPS)

lab-discovery: OUT := build/lab-discovery.json
lab-discovery: MINUTES := 60
lab-discovery: $(READY) ## what lagcast finds out of ten groups from a Kafka address: make lab-discovery OUT=FILE MINUTES=60
	@$(BIN)/python -m benchmarks.discovery --out "$(OUT)" --minutes $(MINUTES)

first-five-minutes: OUT := build/first-minutes.json
first-five-minutes: $(READY) ## from an empty folder to a priced recommendation in a browser, by stage: make first-five-minutes OUT=FILE
	@$(BIN)/python -m benchmarks.first_minutes --out "$(OUT)"

docs: $(READY) ## rewrite what is made of the code: commands, settings, metrics and licences in docs/, the resource's definition, the chart's schema and alerts
	@$(BIN)/python scripts/commands_page.py > docs/commands.md
	@$(BIN)/python scripts/metrics_page.py > docs/metrics.md
	@$(BIN)/python scripts/settings_page.py > docs/settings.md
	@$(BIN)/python scripts/resource_definition.py > deploy/manifests/scalers/crd.yaml
	@cp deploy/manifests/scalers/crd.yaml deploy/chart/files/consumergroupscalers.yaml
	@$(BIN)/lagcast export prometheus-rule > deploy/chart/files/prometheus-rule.yaml
	@$(BIN)/lagcast export dashboard fleet > deploy/chart/files/dashboard-fleet.json
	@$(BIN)/lagcast export dashboard group > deploy/chart/files/dashboard-group.json
	@$(BIN)/python scripts/chart_schema.py > deploy/chart/values.schema.json
	@$(BIN)/python scripts/licences_page.py > docs/licences.md

page-picture: $(READY) ## draw docs/page.png anew: the page of the demo's group, in the browser of the tests
	@PYTHONPATH=. $(BIN)/python scripts/page_picture.py

ENGINE := docker
sbom: $(READY) ## the packages that lagcast needs, as CycloneDX: build/sbom.json; those of Debian in an image: make sbom IMAGE=lagcast ENGINE=docker
	@$(BIN)/python scripts/sbom.py
ifdef IMAGE
	@$(ENGINE) run --rm --interactive --entrypoint python3 "$(IMAGE)" - <scripts/image_packages.py >build/sbom-image.json
	@echo build/sbom-image.json
endif

lock: $(READY) ## solve pyproject.toml anew into requirements/*.txt
	@scripts/lock

clean: ## remove .venv and every cache
	@rm -rf .venv ~/.cache/lagcast/mypy .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
