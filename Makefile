# demo: build and show what it does.  test: everything that must hold.  setup: what the build needs.
# bench, fmt, lint: what they say.

.PHONY: demo test setup bench fmt lint

demo: setup
	cargo build --release --bin tilewright
	scripts/demo.sh

test: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo test --workspace

setup:
	scripts/setup.sh

bench: setup
	cargo bench --workspace

fmt:
	cargo fmt --all

lint: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
