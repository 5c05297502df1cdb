#!/bin/bash
# CPU per unary 1 KB request, Headgate against HAProxy: one worker each, both proxies on CPU 0, mock and wrk on CPU 1,
# 32 connections, the two measured in turn; medians over the rounds.
#   loadtest/bench.sh HEADGATE_BINARY [-c CONNECTIONS] [-d SECONDS] [-r ROUNDS]
# Prints CPU microseconds per request (user, system), requests per second, and Headgate's CPU divided by HAProxy's.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/processes.sh"
binary=${1:?usage: bench.sh HEADGATE_BINARY [-c CONNECTIONS] [-d SECONDS] [-r ROUNDS]}
shift
connections=32 seconds=3 rounds=5
while getopts c:d:r: flag; do
  case $flag in
    c) connections=$OPTARG ;;
    d) seconds=$OPTARG ;;
    r) rounds=$OPTARG ;;
    *) exit 2 ;;
  esac
done
PATH=$PATH:/usr/sbin
require wrk wrk
require haproxy haproxy
require taskset util-linux
require curl curl
[ -x "$binary" ] || fail "$binary cannot be run"
[ "$(nproc)" -ge 2 ] || fail "two CPUs are needed"

need_port 18001 18080 18090 18180  # as in wrk/wrk.jsonc and peers/haproxy.cfg
open_workspace
start_server mock taskset -c 1 "$binary" mock --port 18001 --profile instant
await_ok mock http://127.0.0.1:18001/health 10
start_server headgate taskset -c 0 "$binary" serve --config "$here/wrk/wrk.jsonc"
await_ok headgate http://127.0.0.1:18080/readyz 10
start_server haproxy taskset -c 0 haproxy -db -f "$here/peers/haproxy.cfg"
await_ok haproxy http://127.0.0.1:18180/health 10

hz=$(getconf CLK_TCK)
ticks() { sed 's/.*) //' "/proc/$(pid_of "$1")/stat" | awk '{print $12, $13}'; }  # utime stime

measure() {  # measure NAME PORT: one line "user_us system_us total_us req/s" into $work/NAME.rounds
  local u0 s0 u1 s1 requests micros status sockets
  read -r u0 s0 < <(ticks "$1")
  (cd "$here/wrk" && taskset -c 1 wrk -t 1 -c "$connections" -d "${seconds}s" -s unary_1k.lua "http://127.0.0.1:$2") \
    >"$work/wrk.out" 2>&1 || { cat "$work/wrk.out" >&2; fail "wrk failed"; }
  read -r u1 s1 < <(ticks "$1")
  read -r _ requests micros status _ sockets _ < <(grep '^RESULT' "$work/wrk.out")
  [ "${requests:-0}" -gt 0 ] || { cat "$work/wrk.out" >&2; fail "wrk made no request"; }
  [ "$status" = 0 ] && [ "$sockets" = 0 ] || fail "$1: $status answers were not 200, $sockets socket errors"
  awk -v u=$((u1 - u0)) -v s=$((s1 - s0)) -v hz="$hz" -v n="$requests" -v us="$micros" 'BEGIN {
    f = 1e6 / hz / n; printf "%.2f %.2f %.2f %.0f\n", u * f, s * f, (u + s) * f, n * 1e6 / us }' >>"$work/$1.rounds"
}

median() { awk -v k="$2" '{print $k}' "$work/$1.rounds" | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

measure headgate 18080  # warm both up; not counted
measure haproxy 18180
rm "$work"/*.rounds
for _ in $(seq "$rounds"); do
  measure headgate 18080
  measure haproxy 18180
done
printf '%-10s %14s %10s %10s %10s\n' "" "CPU us/request" user system req/s
for name in headgate haproxy; do
  printf '%-10s %14.2f %10.2f %10.2f %10.0f\n' $name "$(median $name 3)" "$(median $name 1)" "$(median $name 2)" "$(median $name 4)"
done
awk -v a="$(median headgate 3)" -v b="$(median haproxy 3)" -v c="$connections" -v r="$rounds" -v d="$seconds" 'BEGIN {
  printf "ratio %.2f (unary 1 KB, c=%d, medians of %d rounds of %d s in turn)\n", a / b, c, r, d }'
