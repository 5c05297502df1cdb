#!/usr/bin/env bash
# The integration tests of the Release build against the program of a sanitizer build, some at a time: they mostly wait,
# and their bounds are five times wider. One that fails is tried once more by itself.
#   tests/sanitized.sh PRESET [SHARDS] [GTEST_FILTER]
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
preset=$1 shards=${2:-3}
tests=build/release/tests_integration
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export HEADGATE_BINARY=$PWD/build/$preset/headgate HEADGATE_SANITIZED=1 HEADGATE_TEST_WORKERS=2
export TSAN_OPTIONS=atexit_sleep_ms=50${TSAN_OPTIONS:+:$TSAN_OPTIONS}  # else a second at each exit
export GTEST_FILTER=${3:-*} GTEST_COLOR=no

pids=() codes=()
for ((shard = 0; shard < shards; ++shard)); do
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard timeout 900 "$tests" >"$logs/$shard" 2>&1 &
  pids+=($!)
done
for pid in "${pids[@]}"; do
  wait "$pid"
  codes+=($?)
done
total=$(cat "$logs"/* | sed -nE 's/^\[==========\] ([0-9]+) tests? from .* ran.*/\1/p' | awk '{ sum += $1 } END { print sum + 0 }')
failed=0
for ((shard = 0; shard < shards; ++shard)); do
  if ! grep -q '^\[==========\] .* ran' "$logs/$shard"; then
    echo "shard $shard ended before its last test, with exit code ${codes[shard]}:"
    tail -40 "$logs/$shard"
    failed=$((failed + 1)) total=$((total + 1))
  fi
done
for name in $(cat "$logs"/* | sed -nE 's/^\[  FAILED  \] ([A-Za-z0-9_]+\.[A-Za-z0-9_]+)( \(.*)?$/\1/p' | sort -u); do
  GTEST_FILTER=$name GTEST_BRIEF=1 timeout 120 "$tests" >"$logs/again" 2>&1 && { echo "$name passed when tried again"; continue; }
  cat "$logs/again"
  failed=$((failed + 1))
done
[ "$total" -gt 0 ] || failed=1
echo "$((total > 0 ? (total - failed) * 100 / total : 0))% tests passed, $failed tests failed out of $total"
[ "$failed" -eq 0 ]
