#!/bin/bash
# wrk against the gateway in front of a mock that answers at once.
#   loadtest/wrk.sh HEADGATE_BINARY [-c CONNECTIONS] [-d SECONDS] [SCRIPT..]
# Defaults: 64 connections, 60 s, all of unary_1k unary_16k streamed mixed. Prints a row per script; CPU is user+system
# time of the gateway process per request. Exit code 1 on a non-200, a stream without its end, a socket error, or
# requests left open at the mock; 2 on wrong arguments.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/processes.sh"
binary=${1:?usage: wrk.sh HEADGATE_BINARY [-c CONNECTIONS] [-d SECONDS] [SCRIPT..]}
shift
connections=64 seconds=60
read_options 'c count connections' 'd seconds seconds' -- "$@"
scripts=("${names[@]}")
[ ${#scripts[@]} -gt 0 ] || scripts=(unary_1k unary_16k streamed mixed)
for script in "${scripts[@]}"; do
  [[ $script =~ ^[a-z0-9_]+$ ]] && [ -r "$here/wrk/$script.lua" ] && [ "$script" != body ] ||
    wrong_use "there is no script \"$script\"; as unary_1k, unary_16k, streamed, mixed"
done
arguments_done
require wrk wrk
require curl curl
[ -x "$binary" ] || fail "$binary cannot be run"

need_port 18001 18080 18090  # as in wrk/wrk.jsonc
open_workspace
start_server mock "$binary" mock --port 18001 --profile instant
await_ok mock http://127.0.0.1:18001/health 10
start_server gateway "$binary" serve --config "$here/wrk/wrk.jsonc"
await_ok gateway http://127.0.0.1:18080/readyz 10

open_at_mock() { curl -s -m 2 http://127.0.0.1:18001/control | grep -o '"open": *[0-9]*' | grep -o '[0-9]*$'; }

bad=0
printf '%-10s %9s %9s %9s %9s %9s %9s %8s %8s %8s %9s %5s\n' script req/s p50_us p90_us p99_us p99.9_us max_us \
  non-200 no-end sockets cpu_us open
for script in "${scripts[@]}"; do
  before=$(cpu_ticks gateway)
  (cd "$here/wrk" && wrk -t 1 -c "$connections" -d "${seconds}s" --timeout 10s -s "$script.lua" http://127.0.0.1:18080) \
    >"$work/wrk.out" 2>&1 || { cat "$work/wrk.out" >&2; fail "wrk failed"; }
  after=$(cpu_ticks gateway)
  read -r _ requests micros status ends sockets _ p50 p90 p99 p999 max < <(grep '^RESULT' "$work/wrk.out")
  [ "${requests:-0}" -gt 0 ] || { cat "$work/wrk.out" >&2; fail "wrk made no request"; }
  # wrk leaves in the middle of its last requests; the gateway cancels them within a second
  for _ in $(seq 50); do
    open=$(open_at_mock)
    [ "${open:-1}" = 0 ] && break
    sleep 0.1
  done
  awk -v n="$requests" -v us="$micros" -v ticks=$((after - before)) -v hz="$hz" -v script="$script" \
    -v rest="$p50 $p90 $p99 $p999 $max $status $ends $sockets" -v open="${open:-?}" 'BEGIN {
      split(rest, r, " ")
      printf "%-10s %9.0f %9d %9d %9d %9d %9d %8d %8d %8d %9.1f %5s\n", script, n * 1e6 / us, r[1], r[2], r[3], r[4], r[5],
             r[6], r[7], r[8], ticks / hz * 1e6 / n, open
    }'
  [ "$status" = 0 ] && [ "$ends" = 0 ] && [ "$sockets" = 0 ] && [ "${open:-1}" = 0 ] || bad=1
done
[ $bad = 0 ] && echo "OK: every answer was 200 and whole, no socket error, nothing left open" || echo "FAIL"
exit $bad
