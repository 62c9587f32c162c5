#!/usr/bin/env bash
# Checks every example, checks the certificates of some again, plans every example graph, runs those with kernels and shows a wrong layout being refuted. Exit code 0 only if all of it came out as expected.
#   scripts/demo.sh [DEVICE]     runs the kernels on that OpenCL device (`tilewright devices` lists them) or `none`
set -uo pipefail
cd "$(dirname "$0")/.."

tilewright=${TILEWRIGHT:-target/release/tilewright}
device=()
[ $# -eq 0 ] || device=(--device "$1")

if [ ! -x "$tilewright" ]; then
  echo "demo: $tilewright is not built; run 'make demo' or 'cargo build --release' first" >&2
  exit 2
fi

# Examples that must be refuted; all others must be proved.
refuted=(examples/wrong_map.py)

failed=0 checked=0

expect() { # CODE FILE
  local want=$1 file=$2 got=0
  printf '\n$ tilewright check %s\n' "${device[*]:+${device[*]} }$file"
  "$tilewright" check "${device[@]}" "$file" || got=$?
  checked=$((checked + 1))
  if [ "$got" -ne "$want" ]; then
    printf 'demo: %s ended with exit code %s, expected %s\n' "$file" "$got" "$want"
    failed=$((failed + 1))
  fi
}

printf '$ tilewright devices\n'
"$tilewright" devices || failed=$((failed + 1))

for file in examples/*.py; do
  case " ${refuted[*]} " in *" $file "*) continue ;; esac
  expect 0 "$file"
done

# The proofs of a few examples are written down, and Z3 reads them back as text. cvc5 takes minutes for this.
proofs=$(mktemp -d)
trap 'rm -rf "$proofs"' EXIT
for file in examples/addone.py examples/nhwc_to_nchwc.tvm.py examples/rfc39_separators.py; do
  proof=$proofs/$(basename "$file")
  printf '\n$ tilewright check --device none --certificate PROOF %s && tilewright recheck --solver z3 PROOF\n' "$file"
  checked=$((checked + 1))
  { "$tilewright" check --device none --certificate "$proof" "$file" >/dev/null && "$tilewright" recheck --solver z3 "$proof"; } ||
    { printf 'demo: the certificate of %s is not confirmed\n' "$file"; failed=$((failed + 1)); }
done

# Two programs that were written by hand.
printf '\n$ tilewright validate examples/pairs/product.py examples/pairs/product_tiled.py\n'
checked=$((checked + 1))
"$tilewright" validate examples/pairs/product.py examples/pairs/product_tiled.py ||
  { printf 'demo: the tiled product is not proved equal to the plain one\n'; failed=$((failed + 1)); }

for file in examples/graphs/*.json; do
  # A graph that has kernels beside it is run.
  arguments=("$file")
  [ ! -f "${file%.json}.py" ] || arguments+=(--run "${file%.json}.py")
  printf '\n$ tilewright plan %s\n' "${device[*]:+${device[*]} }${arguments[*]}"
  checked=$((checked + 1))
  "$tilewright" plan "${device[@]}" "${arguments[@]}" ||
    { printf 'demo: the plan of %s is not proved, or its kernels are not\n' "$file"; failed=$((failed + 1)); }
done

printf '\nThe next layout is wrong: two indices share an element. It has to be refuted, with exit code 1.\n'
for file in "${refuted[@]}"; do
  expect 1 "$file"
done

printf '\n'
if [ "$failed" -ne 0 ]; then
  echo "demo: $failed of $checked examples did not end as expected"
  exit 1
fi
echo "demo: all $checked examples ended as expected: $((checked - ${#refuted[@]})) proved and run, ${#refuted[@]} refuted with its counterexample"
