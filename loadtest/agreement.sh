#!/bin/bash
# The same three scenarios live and simulated: mock servers, gateway and callers as real processes, and `headgate simulate`
# with the same configuration, arrivals and faults. Goodput and TTFT must agree.
#   loadtest/agreement.sh HEADGATE_BINARY [-d SECONDS] [-p PERCENT]
# Default: 60 s each, at most 10 % apart. Void if the generator's sends were later than 2 ms or the mocks' tokens more
# than 2 ms off (p99), or a process used more than 60 % of a CPU. Exit code: 0 agreed, 1 not, 3 void.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/processes.sh"
binary=${1:?usage: agreement.sh HEADGATE_BINARY [-d SECONDS] [-p PERCENT]}
shift
seconds=60 percent=10
read_options 'd seconds seconds' 'p count percent' -- "$@"
no_names
arguments_done
require curl curl
require jq jq
[ -x "$binary" ] || fail "$binary cannot be run"

need_port 18001 18002 18080 18090
open_workspace
profile=llama-3.1-8b-h100 slo=ttft=4s,tpot=50ms
cat >"$work/config.jsonc" <<'JSON'
{
  "workers": 1, "listen": {"data": "127.0.0.1:18080", "admin": "127.0.0.1:18090", "allow_anonymous": true}, "log": {"access": "off"},
  "pools": {"mock": {"queue": {"requests_max": 40, "wait_max": "5s"}, "backends": [
    {"name": "b1", "url": "http://127.0.0.1:18001", "slots": 32}, {"name": "b2", "url": "http://127.0.0.1:18002", "slots": 32}]}},
  "routes": {"chat": {"pools": ["mock"]}}
}
JSON

start_mock() { start_server "mock$1" "$binary" mock --port "1800$1" --profile $profile; }

void='' apart=''
play() {  # play NAME RATE LIVE_EVENTS.. -- SIMULATED_FAULTS..
  local name=$1 rate=$2 ticks pid
  shift 2
  local events=() faults=()
  while [ "$1" != -- ]; do events+=("$1"); shift; done
  shift
  faults=("$@")
  start_mock 1
  start_mock 2
  await_ok mock1 http://127.0.0.1:18001/health 10
  await_ok mock2 http://127.0.0.1:18002/health 10
  start_server gateway "$binary" serve "$work/config.jsonc"
  await_ok gateway http://127.0.0.1:18080/readyz 10
  local same=(--model chat --rate "$rate" --duration "${seconds}s" --lengths azure-conv --slo "$slo")
  "$binary" load --target http://127.0.0.1:18080 "${same[@]}" "${events[@]}" --json "$work/live.json" >"$work/load.out" 2>&1 || { cat "$work/load.out" >&2; fail "the load failed"; }
  for pid in 1 2; do
    curl -s "http://127.0.0.1:1800$pid/metrics" | awk '/^headgate_mock_itl_error_seconds_bucket{le="0.002"}/ {near = $2}
      /^headgate_mock_itl_error_seconds_count/ {count = $2} END {exit !(near < 0.99 * count)}' &&
      void+=" over 1 % of mock$pid's tokens were more than 2 ms off in $name;"
  done
  for pid in mock1 mock2 gateway; do
    ticks=$(cpu_ticks $pid)
    awk -v t="$ticks" -v hz="$hz" -v s="$seconds" 'BEGIN {exit !(t / hz / s > 0.6)}' && void+=" $pid used more than 60 % of a CPU in $name;"
    stop_server $pid
  done
  "$binary" simulate "$work/config.jsonc" "${same[@]}" "${faults[@]}" --profile $profile --json "$work/sim.json" >"$work/sim.out" 2>&1 || { cat "$work/sim.out" >&2; fail "the simulation failed"; }
  jq -e '.lag_ms.p99 <= 2' "$work/live.json" >/dev/null || void+=" sends were $(jq .lag_ms.p99 "$work/live.json") ms late (p99) in $name;"
  local what live sim differ
  for what in .goodput.per_s .ttft_ms.p50 .ttft_ms.p99; do
    live=$(jq "$what" "$work/live.json") sim=$(jq "$what" "$work/sim.json")
    awk -v a="$live" -v b="$sim" 'BEGIN {exit !(a > 0 && b > 0)}' || fail "$name: $what is $live live and $sim simulated"
    differ=$(awk -v a="$live" -v b="$sim" 'BEGIN {printf "%.1f", (b / a - 1) * 100}')
    printf '%-10s %-14s %9s %9s %+6.1f %%\n' "$name" "${what#.}" "$live" "$sim" "$differ"
    awk -v d="$differ" -v p="$percent" 'BEGIN {exit !(d > p || d < -p)}' && apart+=" $name ${what#.};"
  done
}

printf '%-10s %-14s %9s %9s %s\n' scenario figure live simulated difference
play steady 10 --
play overload 24 --
again="'$binary' mock --port 18001 --profile $profile >>'$work/mock1.log' 2>&1 & echo \$! >'$work/mock1.pid'"
play killed 8 --event "at=1/3;label=killed;kill=mock/b1;run=kill -9 \$(cat '$work/mock1.pid')" --event "at=2/3;label=back;run=$again" \
  -- --fault "at=1/3;backend=mock/b1;do=kill" --fault "at=2/3;backend=mock/b1;do=recover"
if [ -n "$void" ]; then
  echo "void:$void"
  exit 3
elif [ -n "$apart" ]; then
  echo "more than $percent % apart:$apart"
  exit 1
fi
echo "live and simulated agree within $percent %"
