#!/bin/bash
# tests/fuzz/run.sh FUZZER [-n RUNS] [TARGET..]: each target over its committed corpus and what earlier runs found
# (build/fuzz/corpus). Ends at the first finding, with its input in a file; exit code 1.
set -u
here=$(cd "$(dirname "$0")" && pwd)
fuzzer=${1:?usage: run.sh FUZZER [-n RUNS] [TARGET..]}
shift
runs=1000000
while getopts n: flag; do
  case $flag in
    n) runs=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[[ $runs =~ ^[0-9]+$ ]] || { echo "run.sh: -n is \"$runs\", must be a number of runs" >&2; exit 2; }
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(head framing skim splice sse)
for target in "${targets[@]}"; do
  [ -d "$here/corpus/$target" ] || { echo "run.sh: no target \"$target\"; there are: $(ls "$here/corpus" | tr '\n' ' ')" >&2; exit 2; }
  found=$(dirname "$fuzzer")/corpus/$target
  mkdir -p "$found"
  echo "== $target: $runs runs"
  "$fuzzer" --target="$target" -runs="$runs" -max_len=2048 -timeout=10 -print_funcs=0 -artifact_prefix="$(dirname "$fuzzer")/$target-" \
    "$found" "$here/corpus/$target" 2>&1 | grep -v -e '^#' -e '^INFO:' -e 'Uses:' -e 'recommended dictionary'
  [ "${PIPESTATUS[0]}" -eq 0 ] || { echo "== $target: a finding"; exit 1; }
done
echo "== no finding"
