# demo: build and show what it does.  test: everything that must hold.  setup: what the build needs.
# doc: the reference of all crates, without warnings.  deny: licences and sources of the dependencies.
# fuzz-smoke: every oracle and every cargo-fuzz target for a short while, the same each time.  bench, fmt, lint: what they say.
# sabotage: which faults the oracles detect, as docs/SABOTAGE.md.
# dist: a tarball that needs nothing else.  install: the same files below PREFIX (DESTDIR is honoured).

.PHONY: demo test setup doc deny fuzz-smoke sabotage bench fmt lint dist install

PREFIX ?= /usr/local

demo: setup
	cargo build --release --bin tilewright
	scripts/demo.sh

test: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo test --workspace
	$(MAKE) doc
	$(MAKE) deny
	scripts/test-dist.sh
	$(MAKE) fuzz-smoke

doc: setup
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Needs no network. Advisories need one: `cargo deny check advisories`.
deny:
	@if cargo deny --version >/dev/null 2>&1; then cargo deny --offline check licenses bans sources; \
	else echo "skipped: cargo-deny is not installed (cargo install cargo-deny --locked)"; fi

# The campaign needs no nightly compiler; without one the targets are skipped (status 3), and the output says so. It runs on every driver that
# there is: those of the system, Oclgrind, and Intel's after `scripts/opencl_intel.sh`.
fuzz-smoke: setup
	OCL_ICD_VENDORS=$${OCL_ICD_VENDORS:-$$(scripts/opencl-vendors.sh)} cargo run --quiet --bin tilewright -- fuzz --runs 64 --seed 0
	scripts/fuzz.sh --seconds 5 || test $$? -eq 3

# A target folder of its own: the program that is shipped has no faults to switch on.
sabotage: setup
	cargo build --release --bin tilewright --features sabotage --target-dir target/sabotage
	target/sabotage/release/tilewright fuzz --sabotage all --minutes 10 --markdown docs/SABOTAGE.md

# A build of its own (the profile dist), and what it gives is tried in another folder.
dist: setup
	scripts/test-dist.sh "$$(scripts/dist.sh tarball)"

install: setup
	scripts/dist.sh install "$(DESTDIR)$(PREFIX)"

setup:
	scripts/setup.sh

bench: setup
	cargo bench --workspace

fmt:
	cargo fmt --all

lint: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
