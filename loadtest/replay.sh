#!/bin/bash
# Every order of a live process again: two workers under wrk while backends fail and a reload comes in the middle, with
# an event log; then the log's calls are made on a new Dispatcher and each order is compared.
#   loadtest/replay.sh HEADGATE_BINARY [-e EVENTS] [-c CONNECTIONS]
# Default: 1,000,000 calls and orders at 64 connections; about 20 s. Exit code 1 if an order differs.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/processes.sh"
binary=${1:?usage: replay.sh HEADGATE_BINARY [-e EVENTS] [-c CONNECTIONS]}
shift
events=1000000 connections=64
read_options 'e count events' 'c count connections' -- "$@"
no_names
arguments_done
require wrk wrk
require curl curl
[ -x "$binary" ] || fail "$binary cannot be run"

need_port 18001 18002 18003 18080 18090
open_workspace
write_config() {  # write_config BACKENDS
  cat >"$work/config.new" <<JSON
{
  "workers": 2,
  "listen": {"data": "127.0.0.1:18080", "admin": "127.0.0.1:18090"}, "log": {"access": "off"},
  "keys": [{"name": "load", "key": "load-key"}],
  "pools": {"mock": {"queue": {"requests_max": 20}, "backends": [$1]}},
  "routes": {"chat": {"pools": ["mock"]}}
}
JSON
  mv "$work/config.new" "$work/config.jsonc"
}
backend() { printf '{"name": "b%s", "url": "http://127.0.0.1:1800%s", "slots": 16}' "$1" "$1"; }
write_config "$(backend 1), $(backend 2)"
for n in 1 2 3; do start_server "mock$n" "$binary" mock --port "1800$n" --profile instant; done
for n in 1 2 3; do await_ok "mock$n" "http://127.0.0.1:1800$n/health" 10; done
start_server gateway "$binary" serve --config "$work/config.jsonc" --event-log "$work/events"
await_ok gateway http://127.0.0.1:18080/readyz 10

control() { curl -sf -o /dev/null -X POST -d "$2" "http://127.0.0.1:1800$1/control" || fail "mock $1 did not take $2"; }
# Calls are some 70 bytes, orders about as long.
written() { stat -c %s "$work/events"; }
(cd "$here/wrk" && HEADGATE_KEY=load-key exec wrk -t 1 -c "$connections" -d 600s --timeout 10s -s mixed.lua http://127.0.0.1:18080) >"$work/wrk.out" 2>&1 &
wrk=$!
stop_at=$((events * 76)) faulty=
while [ "$(written)" -lt "$stop_at" ] && kill -0 "$wrk" 2>/dev/null; do
  sleep 0.5
  share=$(($(written) * 100 / stop_at))
  progress "$share % of the events"
  if [ -z "$faulty" ] && [ "$share" -ge 20 ]; then
    faulty=1
    control 1 '{"fault": "status", "status": 500}'
  elif [ "$faulty" = 1 ] && [ "$share" -ge 35 ]; then
    faulty=2
    control 1 '{"clear": true}'
    control 2 '{"fault": "status", "status": 429}'
  elif [ "$faulty" = 2 ] && [ "$share" -ge 50 ]; then
    faulty=3
    write_config "$(backend 2), $(backend 3)"
    kill -HUP "$(pid_of gateway)"
  elif [ "$faulty" = 3 ] && [ "$share" -ge 65 ]; then
    faulty=4
    kill -9 "$(pid_of mock3)"
  elif [ "$faulty" = 4 ] && [ "$share" -ge 75 ]; then
    faulty=5
    control 2 '{"clear": true}'
    start_server mock3 "$binary" mock --port 18003 --profile instant
  fi
done
kill -INT "$wrk"
wait "$wrk"
version=$(curl -s http://127.0.0.1:18090/metrics | awk '$1 == "headgate_config_version" {print $2}')
stop_server gateway
progress ""
[ "$faulty" = 5 ] && [ "$version" = 2 ] || { cat "$work/wrk.out" >&2; fail "the faults or the reload did not come ($faulty, $version)"; }
grep -q '^RESULT' "$work/wrk.out" && awk '/^RESULT/ {print $2 " requests of wrk, " $4 + $6 " without a 200 (the faults)"}' "$work/wrk.out"
"$binary" simulate --replay "$work/events"
