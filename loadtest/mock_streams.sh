#!/bin/bash
# Mock model servers in real time: one process on CPU 0 sends so many streams at once, a token each 40 ms and stream, and
# callers on CPU 1 say how far from 40 ms the tokens came.
#   loadtest/mock_streams.sh HEADGATE_BINARY [-s STREAMS] [-e ERROR_MS]
# Default: 2,000 streams, 99 % of all gaps within 2 ms; about 25 s. Exit code 1 if not.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/processes.sh"
binary=${1:?usage: mock_streams.sh HEADGATE_BINARY [-s STREAMS] [-e ERROR_MS]}
shift
streams=2000 error=2
while [ $# -gt 0 ]; do
  next_argument se "-s STREAMS and -e ERROR_MS may be given" "$@"
  shift "$taken"
  case $option in
    -s) want_count -s "$value"; streams=$value ;;
    -e) want_count -e "$value"; error=$value ;;
    *) wrong_use "\"$value\" is one argument too many" ;;
  esac
done
arguments_done
require curl curl
require jq jq
[ -x "$binary" ] || fail "$binary cannot be run"

need_port 18001
open_workspace
# The paced profile makes a token each 10 ms whatever the batch.
start_server mock taskset -c 0 "$binary" mock --port 18001 --profile paced --time-scale 0.25 --slots 65536
await_ok mock http://127.0.0.1:18001/health 10
# All streams begin within some 2 s and take 20 s.
taskset -c 1 "$binary" load --target http://127.0.0.1:18001 --model chat --rate $(((streams + 1) / 2)) --limit "$streams" --duration 60s \
  --lengths fixed --prompt-tokens 20 --output-tokens 500 --json "$work/load.json" --expect "ok==$streams" >"$work/load.out" 2>&1 ||
  { cat "$work/load.out" >&2; fail "the load failed"; }
cpu=$(sed 's/.*) //' "/proc/$(pid_of mock)/stat" | awk -v hz="$(getconf CLK_TCK)" '{printf "%.1f", ($12 + $13) / hz}')
seconds=$(jq .duration_s "$work/load.json")
read -r count low high lag < <(jq -r '[.itl_ms.count, .itl_ms.p005, .itl_ms.p995, .lag_ms.p99] | join(" ")' "$work/load.json")
echo "$streams streams in $seconds s, $count gaps: 99 % of them $low to $high ms; the mock used $cpu s of CPU, sends were $lag ms late (p99)"
awk -v low="$low" -v high="$high" -v e="$error" 'BEGIN {exit !(40 - low <= e && high - 40 <= e)}' || fail "not all within $error ms of 40"
