#!/usr/bin/env bash
# Measures Tilewright beside its peers, all in one run: TVM (IndexMap.inverse, FlattenBuffer), numpy (relayouts), Oclgrind
# (interpretation), PoCL and plain copies. Prints one table in Markdown.
#
#   scripts/peers.sh [--rounds N] [--write]
#
# --write writes the table into docs/BENCHMARKS.md, between its markers. What cannot be installed is a row `not measured: why`.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf '%s\n' "peers: $*" >&2; }

python=$(scripts/peers_env.sh)

# Oclgrind from Debian, where that is allowed.
if ! command -v oclgrind >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  apt-get install -y -qq --no-install-recommends oclgrind >&2 || say "Oclgrind cannot be installed"
fi
OCL_ICD_VENDORS=$(scripts/opencl-vendors.sh)
export OCL_ICD_VENDORS

say "building"
binary=$(cargo bench --bench peers --no-run --message-format json 2>/dev/null |
  "$python" -c 'import json, sys
for line in sys.stdin:
    of = json.loads(line)
    if of.get("reason") == "compiler-artifact" and of["target"]["name"] == "peers" and of.get("executable"):
        print(of["executable"])' | tail -n 1)
[ -n "$binary" ] || { say "benches/peers.rs does not build: cargo bench --bench peers --no-run"; exit 1; }
exec "$python" scripts/peers.py "$binary" "$@"
