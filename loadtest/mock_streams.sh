#!/bin/bash
# Mock model servers in real time: one process on CPU 0, eight replicas, sends so many streams at once, a token each 40 ms
# and stream, to callers on CPU 1, and says on /metrics how far from 40 ms the gaps were that it wrote (on loopback a write
# is at once its caller's to read).
#   loadtest/mock_streams.sh HEADGATE_BINARY [-s STREAMS] [-e ERROR_MS]
# Default: 2,000 streams, 99 % of the gaps within 2 ms (1, 2, 5 or 10 may be given); about 25 s. Exit code 1 if not, 3 if
# it says nothing: when another machine took over 0.3 % of the time of CPU 0 (steal), its gaps are what was measured.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/processes.sh"
binary=${1:?usage: mock_streams.sh HEADGATE_BINARY [-s STREAMS] [-e ERROR_MS]}
shift
streams=2000 error=2
read_options 's count streams' 'e count error' -- "$@"
no_names
[[ $error =~ ^(1|2|5|10)$ ]] || wrong_use "-e is \"$error\"; 1, 2, 5 or 10 is wanted"
arguments_done
require curl curl
require jq jq
[ -x "$binary" ] || fail "$binary cannot be run"

need_port 1800{1..8}
open_workspace
# The paced profile makes a token each 10 ms whatever the batch.
start_server mock taskset -c 0 "$binary" mock --port 18001 --replicas 8 --profile paced --time-scale 0.25 --slots 65536
await_ok mock http://127.0.0.1:18008/health 10
stolen() { awk '$1 == "cpu0" {print $9}' /proc/stat; }
stolen_before=$(stolen)
# All streams begin within some 2 s and take 20 s.
each=$(((streams + 7) / 8)) callers=()
for n in {1..8}; do
  taskset -c 1 "$binary" load --target "http://127.0.0.1:1800$n" --model chat --rate $(((each + 1) / 2)) --limit "$each" --duration 60s --seed "$n" \
    --lengths fixed --prompt-tokens 20 --output-tokens 500 --json "$work/load.$n" --expect "ok==$each" >"$work/load.out.$n" 2>&1 &
  callers+=($!)
done
for n in {1..8}; do wait "${callers[n - 1]}" || { cat "$work/load.out.$n" >&2; fail "the load failed"; }; done
cpu=$(awk -v t="$(cpu_ticks mock)" -v hz="$hz" 'BEGIN {printf "%.1f", t / hz}')
seconds=$(jq -s 'map(.duration_s) | max' "$work"/load.{1..8})
read -r count within < <(for n in {1..8}; do curl -s "http://127.0.0.1:1800$n/metrics"; done | awk -v e="$error" '
  /^headgate_mock_itl_error_seconds_count/ {count += $2}
  index($0, "headgate_mock_itl_error_seconds_bucket{le=\"" e / 1000 "\"}") {within += $2} END {print count, within}')
stolen=$(awk -v t=$(($(stolen) - stolen_before)) -v hz="$hz" -v s="$seconds" 'BEGIN {printf "%.2f", 100 * t / hz / s}')
awk -v n=$((8 * each)) -v s="$seconds" -v count="$count" -v within="$within" -v e="$error" -v cpu="$cpu" -v stolen="$stolen" 'BEGIN {
  share = count > 0 ? within / count : 0
  printf "%d streams in %.1f s, %d gaps: %.2f %% within %d ms of what was meant; the mock used %.1f s of CPU 0, steal was %.2f %%\n", n, s, count, share * 100, e, cpu, stolen
  exit share >= 0.99 ? 0 : stolen > 0.3 ? 3 : 1}'
code=$?
[ $code != 3 ] || { echo "void: less than 99 % within $error ms, and not ours alone" >&2; exit 3; }
[ $code = 0 ] || fail "less than 99 % within $error ms"
