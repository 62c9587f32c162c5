#!/usr/bin/env bash
# Runs the cargo-fuzz targets, one after the other, and prints a table of what they did. A finding ends with status 1.
#
#   scripts/fuzz.sh                          every target for a minute
#   scripts/fuzz.sh --seconds 600 passes     one of them for ten
#   scripts/fuzz.sh --minimise passes        makes its corpus small again, after a long run with --keep
#   scripts/fuzz.sh --sanitizer none         without AddressSanitizer: faster to build and to run
#
# A finding lies in fuzz/artifacts/TARGET/: the input as libFuzzer has it, and as a file for `tilewright replay`.
# Runs begin with the seeds in fuzz/corpus/ alone, and with the same random numbers. With --keep, what libFuzzer learns goes to
# fuzz/target/corpus/TARGET and is there the next time; the seeds change with --minimise alone, which takes that in.
set -uo pipefail
cd "$(dirname "$0")/.."

ALL=(read_script read_layout read_graph roundtrip passes order interpreter padding inverse arithmetic encoder schedules blocks block_schedules
  interleavings steps second_judge recheck lifting claims derivations written_passes judge_maps judge_programs judge_pairs
  judge_layouts certificate planner device)
SEED=1          # the same campaign each time
MEMORY=4096     # MiB; the sanitizer takes its share
TIMEOUT=60      # seconds for one input, where other work may take most of the cores
LENGTH=1024     # bytes of an input, as campaign/src/bytes.rs has it
TEXT=4096       # bytes of a text, as campaign/src/config.rs has it
CARGO_FUZZ_VERSION=0.13.2

seconds=60
sanitizer=address
keep=
minimise=
targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=${2:?--seconds takes a number}; shift ;;
    --sanitizer)
      sanitizer=${2:?--sanitizer takes address or none}
      case $sanitizer in address | none) ;; *) printf 'fuzz: --sanitizer takes address or none\n' >&2; exit 2 ;; esac
      shift
      ;;
    --keep) keep=yes ;;
    --minimise) minimise=yes ;;
    -h | --help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) printf 'fuzz: unknown option %s\n' "$1" >&2; exit 2 ;;
    *)
      [ -e "fuzz/fuzz_targets/$1.rs" ] || { printf 'fuzz: no target %s; there are %s\n' "$1" "${ALL[*]}" >&2; exit 2; }
      targets+=("$1")
      ;;
  esac
  shift
done
[ ${#targets[@]} -gt 0 ] || targets=("${ALL[@]}")
case $seconds in '' | *[!0-9]*) printf 'fuzz: --seconds takes a whole number\n' >&2; exit 2 ;; esac

say() { printf 'fuzz: %s\n' "$*" >&2; }

length() { case $1 in read_*) printf %s "$TEXT" ;; *) printf %s "$LENGTH" ;; esac; }

# Status 3 is for what could not be looked at, as everywhere in this project.
skip() {
  printf 'skipped: cargo-fuzz targets: %s\n' "$1"
  exit 3
}

if [ -n "${FUZZ_TOOLCHAIN:-}" ]; then
  toolchain=$FUZZ_TOOLCHAIN
elif cargo +nightly --version >/dev/null 2>&1; then
  toolchain=nightly
else
  say "libFuzzer needs a nightly compiler. Install one and run this again:"
  say "  rustup toolchain install nightly --profile minimal"
  skip "there is no nightly toolchain"
fi
command -v c++ >/dev/null || skip "libFuzzer is built with a C++ compiler, and there is none (Debian's g++)"
if ! cargo fuzz --version >/dev/null 2>&1; then
  say "installing cargo-fuzz $CARGO_FUZZ_VERSION"
  cargo install --quiet --locked --version "$CARGO_FUZZ_VERSION" cargo-fuzz >&2 || skip "cargo-fuzz cannot be installed"
fi

# Drivers: nothing is kept of the kernels, Oclgrind is there where it is installed, and reports to a file.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export POCL_KERNEL_CACHE=0 POCL_CACHE_DIR=$scratch/pocl OCLGRIND_LOG=$scratch/oclgrind.log OCLGRIND_DATA_RACES=1
mkdir -p "$POCL_CACHE_DIR"
[ -n "${OCL_ICD_VENDORS:-}" ] || OCL_ICD_VENDORS=$(scripts/opencl-vendors.sh 2>/dev/null) || true
[ -z "${OCL_ICD_VENDORS:-}" ] || export OCL_ICD_VENDORS
# OpenCL drivers keep what they have until the end: that is no leak of ours. PoCL handles signals of its own kernels. The last
# three are for speed: no call stack is kept for each allocation, and less of what was freed.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:detect_odr_violation=0:allow_user_segv_handler=1\
:malloc_context_size=0:quarantine_size_mb=8:detect_stack_use_after_return=0}

# A folder for each kind of build: neither throws the other away. Each target is run as cargo-fuzz would run it, but is not
# looked at by cargo again.
built=$PWD/fuzz/target
[ "$sanitizer" = address ] || built=$built/$sanitizer
say "building with $toolchain ($(cargo "+$toolchain" --version)), sanitizer: $sanitizer"
began=$SECONDS
if ! cargo "+$toolchain" fuzz build --sanitizer "$sanitizer" --target-dir "$built" >"$scratch/build.log" 2>&1; then
  tail -40 "$scratch/build.log" >&2
  say "the targets do not build"
  exit 1
fi
say "built in $((SECONDS - began)) s"

# The triple is the compiler's own.
host=$(rustc "+$toolchain" -vV | sed -n 's/^host: //p')
program() { printf '%s' "$built/$host/release/$1"; }

# Keeps the smallest inputs that reach all that the seeds and what was learnt reach. An input that fails is left out, and said.
if [ -n "$minimise" ]; then
  for target in "${targets[@]}"; do
    mkdir -p "fuzz/target/corpus/$target" "fuzz/corpus/$target" "fuzz/artifacts/$target" "$scratch/small/$target"
    "$(program "$target")" -merge=1 -artifact_prefix="fuzz/artifacts/$target/" -max_len="$(length "$target")" \
      -rss_limit_mb="$MEMORY" -timeout="$TIMEOUT" "$scratch/small/$target" "fuzz/corpus/$target" "fuzz/target/corpus/$target" \
      >"$scratch/merge.log" 2>&1 || { tail -20 "$scratch/merge.log" >&2; exit 1; }
    if [ -z "$(ls -A "$scratch/small/$target")" ]; then
      say "$target: nothing is left of its seeds, which stay as they are"
      tail -20 "$scratch/merge.log" >&2
      exit 1
    fi
    rm -rf "fuzz/corpus/$target"
    cp -r "$scratch/small/$target" "fuzz/corpus/$target"
    printf '%s: %s seeds, %s bytes\n' "$target" "$(find "fuzz/corpus/$target" -type f | wc -l)" \
      "$(cat fuzz/corpus/"$target"/* | wc -c)"
  done
  exit 0
fi

number() { sed -n "s/^stat::$1: *//p" "$2" | tail -1; }

found=0
skipped=0
printf '%-16s %10s %10s %9s %9s %8s  %s\n' target runs runs/s edges features corpus result
for target in "${targets[@]}"; do
  learnt=$scratch/corpus/$target
  [ -z "$keep" ] || learnt=fuzz/target/corpus/$target
  mkdir -p "$learnt" "fuzz/corpus/$target" "fuzz/artifacts/$target"
  # The readers take text; what the others take are bytes that cases are drawn from.
  dictionary=fuzz/dictionaries/$target.dict
  [ -e "$dictionary" ] || dictionary=fuzz/dictionaries/cases.dict
  log=$scratch/$target.log
  "$(program "$target")" -artifact_prefix="fuzz/artifacts/$target/" -dict="$dictionary" -seed="$SEED" \
    -max_total_time="$seconds" -rss_limit_mb="$MEMORY" -timeout="$TIMEOUT" -max_len="$(length "$target")" -print_final_stats=1 \
    "$learnt" "fuzz/corpus/$target" >"$log" 2>&1
  status=$?
  runs=$(number number_of_executed_units "$log")
  rate=$(number average_exec_per_sec "$log")
  last=$(grep -E '^#[0-9]+.*cov:' "$log" | tail -1)
  edges=$(sed -n 's/.*cov: \([0-9]*\).*/\1/p' <<<"$last")
  features=$(sed -n 's/.* ft: \([0-9]*\).*/\1/p' <<<"$last")
  corpus=$(sed -n 's/.* corp: \([0-9]*\).*/\1/p' <<<"$last")
  why=$(sed -n 's/^skipped: //p' "$log" | head -1)
  result=clean
  if [ "$status" -ne 0 ]; then
    result="FOUND SOMETHING (status $status)"
    found=1
  elif [ -n "$why" ]; then
    result="skipped: $why"
    skipped=1
  elif [ "${runs:-0}" -eq 0 ]; then
    result="RAN NOTHING"
    found=1
  fi
  printf '%-16s %10s %10s %9s %9s %8s  %s\n' "$target" "${runs:--}" "${rate:--}" "${edges:--}" "${features:--}" \
    "${corpus:--}" "$result"
  if [ "$status" -ne 0 ]; then
    tail -60 "$log" >&2
    find "fuzz/artifacts/$target" -type f -newer "$POCL_CACHE_DIR" -printf 'fuzz: %p\n' >&2
  fi
done
[ "$skipped" -eq 0 ] || printf 'skipped: some targets could not look at anything\n'
exit "$found"
