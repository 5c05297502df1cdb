#!/bin/bash
# What the event log costs: unary 1 KB requests to a gateway with one and to one without, in turn, everything on CPU 0.
# Each round starts both anew, since two runs of the same program differ by some percent for as long as they live.
#   loadtest/event_log.sh HEADGATE_BINARY [-c CONNECTIONS] [-r ROUNDS] [-d SECONDS]
# Medians of 15 rounds of 2 s at 32 connections, about 2 minutes: CPU microseconds of the gateway per request, its writer included.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/processes.sh"
binary=${1:?usage: event_log.sh HEADGATE_BINARY [-c CONNECTIONS] [-r ROUNDS] [-d SECONDS]}
shift
connections=32 rounds=15 seconds=2
while [ $# -gt 0 ]; do
  next_argument crd "-c CONNECTIONS, -r ROUNDS and -d SECONDS may be given" "$@"
  shift "$taken"
  case $option in
    -c) want_count -c "$value"; connections=$value ;;
    -r) want_count -r "$value"; rounds=$value ;;
    -d) want_seconds -d "$value"; seconds=${value%s} ;;
    *) wrong_use "\"$value\" is one argument too many" ;;
  esac
done
arguments_done
require wrk wrk
require curl curl
[ -x "$binary" ] || fail "$binary cannot be run"

need_port 18001 18080 18090
open_workspace
cat >"$work/config.jsonc" <<JSON
{
  "workers": 1, "listen": {"data": "127.0.0.1:18080", "admin": "127.0.0.1:18090"}, "upstream": {"idle_max": 1024},
  "keys": [{"name": "load", "key": "load-key"}],
  "pools": {"mock": {"backends": [{"name": "b1", "url": "http://127.0.0.1:18001", "slots": 4096}]}},
  "routes": {"chat": {"pools": ["mock"]}}
}
JSON
start_server mock taskset -c 0 "$binary" mock --port 18001 --profile instant
await_ok mock http://127.0.0.1:18001/health 10

hz=$(getconf CLK_TCK)
ticks() { sed 's/.*) //' "/proc/$(pid_of gateway)/stat" | awk '{print $12 + $13}'; }
ask() {  # ask SECONDS: sets $requests
  local status sockets
  (cd "$here/wrk" && HEADGATE_KEY=load-key taskset -c 0 wrk -t 1 -c "$connections" -d "$1s" -s unary_1k.lua http://127.0.0.1:18080) \
    >"$work/wrk.out" 2>&1 || { cat "$work/wrk.out" >&2; fail "wrk failed"; }
  read -r _ requests _ status _ sockets _ < <(grep '^RESULT' "$work/wrk.out")
  [ "${requests:-0}" -gt 0 ] && [ "$status$sockets" = 00 ] || fail "$requests requests, $status without a 200, $sockets socket errors"
}
measure() {  # measure NAME OPTIONS: appends CPU microseconds per request to $work/NAME
  local before
  start_server gateway taskset -c 0 sh -c "exec '$binary' serve '$work/config.jsonc' $2 >/dev/null"
  await_ok gateway http://127.0.0.1:18080/readyz 10
  ask 1
  before=$(ticks)
  ask "$seconds"
  awk -v t=$(($(ticks) - before)) -v hz="$hz" -v n="$requests" 'BEGIN {printf "%.3f\n", t / hz * 1e6 / n}' >>"$work/$1"
  [ "$(curl -s http://127.0.0.1:18090/metrics | awk '$1 == "headgate_event_log_lost_total" {print $2}')" = 0 ] || fail "records were lost"
  kill "$(pid_of gateway)"
  while kill -0 "$(pid_of gateway)" 2>/dev/null; do sleep 0.05; done
}
for round in $(seq "$rounds"); do
  [ ! -t 2 ] || printf '\r\033[Kround %s of %s' "$round" "$rounds" >&2
  measure plain ""
  measure logged "--event-log '$work/events'"
done
[ ! -t 2 ] || printf '\r\033[K' >&2
median() { sort -n "$work/$1" | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
awk -v a="$(median plain)" -v b="$(median logged)" 'BEGIN {printf "without %.2f us, with the event log %.2f us a request: %+.1f %%\n", a, b, (b / a - 1) * 100}'
