#!/bin/bash
# What a refusal costs against a served 1 KB unary request: the same request with a wrong key, and to a pool that is full.
#   loadtest/refusals.sh HEADGATE_BINARY [-c CONNECTIONS] [-r ROUNDS] [-d SECONDS]
# Everything on CPU 0, the three kinds in turn; medians of 5 rounds of 2 s at 32 connections. Prints CPU microseconds of
# the gateway per request and the share of a served one. Exit code 1 if an answer was not the one meant.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/processes.sh"
binary=${1:?usage: refusals.sh HEADGATE_BINARY [-c CONNECTIONS] [-r ROUNDS] [-d SECONDS]}
shift
connections=32 rounds=5 seconds=2
read_options 'c count connections' 'r count rounds' 'd seconds seconds' -- "$@"
no_names
arguments_done
require wrk wrk
require curl curl
[ -x "$binary" ] || fail "$binary cannot be run"

need_port 18001 18002 18080 18090
open_workspace
on_cpu0=(taskset -c 0)
start_server mock "${on_cpu0[@]}" "$binary" mock --port 18001 --profile instant
start_server busy "${on_cpu0[@]}" "$binary" mock --port 18002 --profile demo
await_ok mock http://127.0.0.1:18001/health 10
await_ok busy http://127.0.0.1:18002/health 10
start_server gateway "${on_cpu0[@]}" sh -c "exec '$binary' serve --config '$here/wrk/refused.jsonc' >/dev/null"
await_ok gateway http://127.0.0.1:18080/readyz 10
start_server holder curl -sN -o /dev/null -H 'Authorization: Bearer load-key' -H 'Content-Type: application/json' \
  -d '{"model":"full","stream":true,"max_tokens":100000,"messages":[{"role":"user","content":"hold"}]}' http://127.0.0.1:18080/v1/chat/completions
until curl -s http://127.0.0.1:18090/metrics | grep -q '^headgate_backend_in_flight{backend="busy/b2"} 1'; do sleep 0.1; done

measure() {  # measure KIND KEY MODEL STATUS: appends CPU microseconds per request to $work/KIND
  local before after requests status sockets
  before=$(cpu_ticks gateway)
  (cd "$here/wrk" && HEADGATE_KEY=$2 MODEL=$3 STATUS=$4 taskset -c 0 wrk -t 1 -c "$connections" -d "${seconds}s" -s refused.lua http://127.0.0.1:18080) \
    >"$work/wrk.out" 2>&1 || { cat "$work/wrk.out" >&2; fail "wrk failed"; }
  after=$(cpu_ticks gateway)
  read -r _ requests _ status _ sockets _ < <(grep '^RESULT' "$work/wrk.out")
  [ "${requests:-0}" -gt 0 ] && [ "$status$sockets" = 00 ] || fail "$1: $requests requests, $status with another status than $4, $sockets socket errors"
  us_each $((after - before)) "$requests" >>"$work/$1"
}
each_kind() {
  measure served load-key chat 200
  measure wrong_key another-key chat 401
  measure queue_full load-key full 503
}

each_kind  # to warm up
rm "$work"/{served,wrong_key,queue_full}
for _ in $(seq "$rounds"); do each_kind; done
printf '%-12s %8s %s\n' kind CPU_us "of a served one"
for kind in served wrong_key queue_full; do
  printf '%-12s %8s %s\n' "$kind" "$(median "$work/$kind")" "$(awk -v a="$(median "$work/$kind")" -v b="$(median "$work/served")" 'BEGIN {printf "%.0f %%", a / b * 100}')"
done
