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
read_options 'c count connections' 'r count rounds' 'd seconds seconds' -- "$@"
no_names
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
  before=$(cpu_ticks gateway)
  ask "$seconds"
  us_each $(($(cpu_ticks gateway) - before)) "$requests" >>"$work/$1"
  [ "$(curl -s http://127.0.0.1:18090/metrics | awk '$1 == "headgate_event_log_lost_total" {print $2}')" = 0 ] || fail "records were lost"
  stop_server gateway
}
for round in $(seq "$rounds"); do
  progress "round $round of $rounds"
  measure plain ""
  measure logged "--event-log '$work/events'"
done
progress ""
awk -v a="$(median "$work/plain")" -v b="$(median "$work/logged")" 'BEGIN {printf "without %.2f us, with the event log %.2f us a request: %+.1f %%\n", a, b, (b / a - 1) * 100}'
