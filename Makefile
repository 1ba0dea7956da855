# `make` shows what there is. INVENTORY= names other machines: make lakehouse INVENTORY=inventory/three-node
# PROFILE=core leaves Trino, Flink and the Python clients out, now and in every later run; PROFILE=full brings them.
# TARGET=compose asks the stack of docker compose: make smoke TARGET=compose
# BUNDLE=build/lakehouse-full.bundle.tar installs out of that file alone, where there is no network: make lakehouse BUNDLE=...
# CONFIRM=<cluster> lets make bench, make drills and make test INVENTORY=inventory/local remove the nodes that there are.
TARGET ?= nodes
# Before the default of the other targets: `make test` has a cluster of its own.
TEST_INVENTORY := $(or $(INVENTORY),tests/inventory)
INVENTORY ?= inventory/local

SHELL := /bin/bash
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Images of Docker set it. The tools of .venv are not compiled when they are installed: each start of Ansible would.
unexport PYTHONDONTWRITEBYTECODE
export LAKEHOUSE_PROFILE := $(PROFILE)
export LAKEHOUSE_BUNDLE := $(if $(BUNDLE),$(abspath $(BUNDLE)),$(LAKEHOUSE_BUNDLE))
LAKEHOUSE = .venv/bin/lakehouse
STARTED := $(shell date +%s)
ENV_OPTION = $(if $(ENV_FILE),--env-file $(ENV_FILE))
CONFIRMED = $(if $(CONFIRM),--confirm $(CONFIRM))
SUITE_ARGS = --target $(TARGET) --inventory $(INVENTORY) $(ENV_OPTION)

.PHONY: help
help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: lakehouse
lakehouse: tools ## From a fresh machine to a verified lakehouse, with a report
	@$(LAKEHOUSE) deploy --inventory $(INVENTORY) --started $(STARTED)

.PHONY: bundle
bundle: tools ## Write all that `make lakehouse BUNDLE=file` needs where there is no network into that file
	@$(LAKEHOUSE) bundle --inventory $(INVENTORY) --started $(STARTED)

.PHONY: test
test: tools-dev ## Lint, unit, render, and every cluster test on nodes of their own
	@$(LAKEHOUSE) test --inventory $(TEST_INVENTORY) --started $(STARTED) $(if $(filter 1,$(KEEP)),--keep) $(CONFIRMED)

.PHONY: nightly
nightly: tools-dev ## Both suites on a stack of docker compose, its report in build/nightly/
	@$(LAKEHOUSE) nightly --started $(STARTED)

.PHONY: drills
drills: tools-dev ## Take nodes and containers of their own apart, the report in docs/drills.md; DRILLS="scale kills" some, DRILLS=due the late ones
	@$(LAKEHOUSE) drills $(DRILLS) --inventory $(TEST_INVENTORY) --started $(STARTED) $(CONFIRMED)

.PHONY: smoke
smoke: tools ## Run the smoke suite against the cluster and write the report
	@$(LAKEHOUSE) smoke $(SUITE_ARGS) --started $(STARTED)

.PHONY: matrix
matrix: tools ## Run every engine on every format, operation by operation, and write the report
	@$(LAKEHOUSE) matrix $(SUITE_ARGS) --started $(STARTED)

.PHONY: status
status: tools ## Show what runs, what it holds and what is wrong; JSON=1 for programs, WATCH=1 again and again
	@$(LAKEHOUSE) status --inventory $(INVENTORY) $(if $(filter 1,$(JSON)),--json) $(if $(filter 1,$(WATCH)),--watch)

.PHONY: doctor
doctor: tools ## Say what is wrong, a line each, with the next command; JSON=1 for programs
	@$(LAKEHOUSE) doctor --inventory $(INVENTORY) $(if $(filter 1,$(JSON)),--json)

.PHONY: console
console: tools ## Show the same and what is in HDFS as a live page for a browser, until Ctrl-C; PORT=8765
	@$(LAKEHOUSE) console --inventory $(INVENTORY) $(if $(PORT),--port $(PORT))

.PHONY: support-bundle
support-bundle: tools ## Pack logs, configuration and states of all hosts into build/, without secrets
	@$(LAKEHOUSE) support-bundle --inventory $(INVENTORY)

.PHONY: down
down: tools ## Remove the local nodes and their data
	@$(LAKEHOUSE) down --inventory $(INVENTORY)

.PHONY: compose-up
compose-up: tools ## Start the same lakehouse with docker compose on this computer
	@$(LAKEHOUSE) compose up --started $(STARTED) $(ENV_OPTION)

.PHONY: compose-image
compose-image: tools ## Build the images of docker compose
	@$(LAKEHOUSE) compose image --started $(STARTED) $(ENV_OPTION)

.PHONY: compose-names
compose-names: tools ## Let programs on this computer find the DataNodes: their names in /etc/hosts (as root)
	@$(LAKEHOUSE) compose names $(ENV_OPTION) $(if $(filter 1,$(FORGET)),--forget)

.PHONY: compose-down
compose-down: tools ## Stop docker compose and keep its data; VOLUMES=1 removes them too
	@$(LAKEHOUSE) compose down $(ENV_OPTION) $(if $(filter 1,$(VOLUMES)),--volumes)

.PHONY: risky-tables
risky-tables: tools ## List tables that another engine reads wrongly or not at all
	@$(LAKEHOUSE) risky-tables $(SUITE_ARGS)

.PHONY: bench
bench: tools ## Remove the local nodes, measure new ones beside a floor, and remove these, into build/bench/ and docs/numbers.yml
	@$(LAKEHOUSE) bench $(SUITE_ARGS) $(CONFIRMED)

.PHONY: bench-tpch
bench-tpch: tools-dev ## Compare the cluster with stock Spark and Trino on TPC-H, into build/bench/tpch.json
	@python -m suites.matrix.tpch.bench $(if $(ROUNDS),--rounds $(ROUNDS))

.PHONY: bench-scale
bench-scale: tools-dev ## Measure 3, 6 and 12 local nodes of their own, into build/bench/scale.json; NODES="3 6" asks for others
	@python -m lakehouse.dev.scale $(or $(NODES),3 6 12)

.PHONY: lint
lint: tools-dev ## Style, types, layers of packages, the rules of Ansible and shell, addresses by hand, pronouns, vague names, and subjects of commits
	@ruff check && ruff format --check && mypy && lint-imports && yamllint --strict . && ansible-lint && shellcheck scripts/* .ci/run && python -m lakehouse.dev.subjects && python -m lakehouse.dev.addresses && python -m lakehouse.dev.pronouns && python -m lakehouse.dev.names

.PHONY: unit
unit: tools-dev ## Fast tests: no host, no network
	@pytest --numprocesses auto --dist loadfile --no-loadscope-reorder -m "not network and not cluster and not drill and not longdrill" tests/render tests/unit

.PHONY: golden
golden: tools-dev ## Write the expected renderings again
	@python -m tests.render.rendering

.PHONY: docs
docs: tools-dev ## Write the generated pages again
	@python -m lakehouse.dev.roledocs && python -m lakehouse.dev.numbers && python -m suites.matrix.markdown && python -m lakehouse.doctor.failures && python -m lakehouse.dev.dashboards

.PHONY: readme
readme: tools-dev ## Write the last run's output into the README, its seconds into docs/numbers.yml
	@python -m lakehouse.dev.readme

.PHONY: lock
lock: tools-dev ## Pin the Python tools again, with hashes and without index addresses
	@cd requirements && for name in runtime dev; do \
	  pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links \
	    --no-emit-trusted-host --output-file $$name.lock $$name.in; done

.PHONY: tools tools-dev
tools:
	@scripts/bootstrap
tools-dev:
	@scripts/bootstrap --dev
