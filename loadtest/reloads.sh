#!/bin/bash
# Reloads under load: wrk runs, 20 streams are open, and once a second a new configuration adds a second backend or takes
# it away again. No request may fail, every stream must be the text its backend sends, no counter may fall.
#   loadtest/reloads.sh HEADGATE_BINARY [-n RELOADS] [-c CONNECTIONS]
# Default: 20 reloads, 32 connections; about 25 s. Exit code 1 if anything was lost.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/processes.sh"
binary=${1:?usage: reloads.sh HEADGATE_BINARY [-n RELOADS] [-c CONNECTIONS]}
shift
reloads=20 connections=32 streams=20
read_options 'n count reloads' 'c count connections' -- "$@"
no_names
arguments_done
require wrk wrk
require curl curl
[ -x "$binary" ] || fail "$binary cannot be run"

need_port 18001 18002 18003 18080 18090
open_workspace
write_config() {  # write_config [FURTHER_BACKEND]: replaced by rename, so that never a half of it is seen
  cat >"$work/config.new" <<JSON
{
  "listen": {"data": "127.0.0.1:18080", "admin": "127.0.0.1:18090"}, "log": {"access": "off"},
  "keys": [{"name": "load", "key": "load-key"}],
  "pools": {
    "quick": {"balance": "round_robin", "backends": [{"name": "b1", "url": "http://127.0.0.1:18001", "slots": 4096}${1:-}]},
    "paced": {"backends": [{"name": "b3", "url": "http://127.0.0.1:18003", "slots": 64}]}
  },
  "routes": {"chat": {"pools": ["quick"]}, "paced": {"pools": ["paced"]}}
}
JSON
  mv "$work/config.new" "$work/config.jsonc"
}
second=', {"name": "b2", "url": "http://127.0.0.1:18002", "slots": 4096}'
write_config
start_server mock1 "$binary" mock --port 18001 --profile instant
start_server mock2 "$binary" mock --port 18002 --profile instant
start_server mock3 "$binary" mock --port 18003 --profile paced --slots 64
for n in 1 2 3; do await_ok "mock$n" "http://127.0.0.1:1800$n/health" 10; done
start_server gateway "$binary" serve --config "$work/config.jsonc"
await_ok gateway http://127.0.0.1:18080/readyz 10

stream() {  # stream PORT FILE: what a stream as long as the reloads take says, without what differs by request
  curl -sN -m $((reloads + 30)) -H 'Authorization: Bearer load-key' -H 'Content-Type: application/json' \
    -d "{\"model\":\"paced\",\"stream\":true,\"max_tokens\":$((reloads * 100)),\"messages\":[{\"role\":\"user\",\"content\":\"count\"}]}" \
    "http://127.0.0.1:$1/v1/chat/completions" | sed -E 's/"id":"[^"]*"//; s/"created":[0-9]+//' >"$2"
}
counters() { curl -s http://127.0.0.1:18090/metrics | awk '/^[a-z_]+_(total|count)[ {]/ {print $1, $2}' | sort; }
metric() { curl -s http://127.0.0.1:18090/metrics | awk -v name="$1" '$1 == name {print $2}'; }

stream 18003 "$work/expected" &
waiting=($!)
for n in $(seq "$streams"); do
  stream 18080 "$work/stream.$n" &
  waiting+=($!)
done
until [ "$(metric 'headgate_backend_in_flight{backend="paced/b3"}')" = "$streams" ]; do sleep 0.1; done
(cd "$here/wrk" && HEADGATE_KEY=load-key exec wrk -t 1 -c "$connections" -d "$((reloads + 1))s" --timeout 10s -s unary_1k.lua http://127.0.0.1:18080) >"$work/wrk.out" 2>&1 &
waiting+=($!)

begun=$SECONDS refused=0 fallen=0
for n in $(seq "$reloads"); do
  sleep 1
  counters >"$work/before"
  if [ $((n % 2)) = 1 ]; then write_config "$second"; else write_config; fi
  [ "$(curl -s -o "$work/answer" -w '%{http_code}' -X POST -H 'x-headgate-admin: 1' http://127.0.0.1:18090/admin/reload)" = 200 ] || refused=$((refused + 1))
  counters >"$work/after"
  fallen=$((fallen + $(join "$work/before" "$work/after" | awk '$3 < $2' | wc -l)))
  progress "reload $n of $reloads"
done
took=$((SECONDS - begun))
wait "${waiting[@]}"
progress ""

read -r _ requests _ status _ sockets _ < <(grep '^RESULT' "$work/wrk.out") || { cat "$work/wrk.out" >&2; fail "wrk failed"; }
differing=0
for n in $(seq "$streams"); do cmp -s "$work/expected" "$work/stream.$n" || differing=$((differing + 1)); done
tokens=$(grep -c '^data: {' "$work/expected")
version=$(metric headgate_config_version)
echo "$reloads reloads in $took s: $refused refused, version $version now"
echo "$requests requests of wrk: $((status + sockets)) failed"
echo "$streams streams of $tokens events: $differing differ from what the backend sends itself"
echo "$fallen counters fell"
[ $((refused + status + sockets + differing + fallen)) = 0 ] && [ "$requests" -gt 0 ] && [ "$tokens" -gt $((reloads * 90)) ] &&
  [ "$version" = $((reloads + 1)) ] || fail "something was lost"
