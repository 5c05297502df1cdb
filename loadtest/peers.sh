#!/bin/bash
# Headgate beside HAProxy (plain, and doing the same job), nginx and a byte relay that parses nothing (the floor).
#   loadtest/peers.sh BUILD_FOLDER [-r ROUNDS] [-d SECONDS] [-p "PEER.."] [ROW..]
# Each row is a kind of load: unary_1k and unary_16k at c=1, 32, 256; streamed (full speed, c=32); paced (256 streams,
# events 10 ms apart). Default: all rows and peers, 5 rounds of 2 s, about 9 minutes. Everything runs on CPU 0, one
# worker each, and the peers are visited in turn, so that what disturbs one disturbs all. Printed per row and peer,
# medians over the rounds: CPU microseconds per request or event (user, system), requests or events per second, p50 and
# p99 in microseconds, resident memory; then Headgate's CPU over each peer's. "direct" is the load without any proxy.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/processes.sh"
build=${1:?usage: peers.sh BUILD_FOLDER [-r ROUNDS] [-d SECONDS] [-p "PEER.."] [ROW..]}
shift
rounds=5 seconds=2 peers="direct floor headgate haproxy haproxy_same_job nginx"
read_options 'r count rounds' 'd seconds seconds' 'p text peers' -- "$@"
rows=("${names[@]}")
[ ${#rows[@]} -gt 0 ] || rows=(unary_1k:1 unary_1k:32 unary_1k:256 unary_16k:1 unary_16k:32 unary_16k:256 streamed:32 paced:256)

for row in "${rows[@]}"; do
  [[ $row =~ ^(unary_1k|unary_16k|streamed|paced):[1-9][0-9]{0,4}$ ]] ||
    wrong_use "there is no row \"$row\"; unary_1k:32 is one, as are unary_16k, streamed, paced with a number of connections"
done
declare -A port=([direct]=18001 [headgate]=18080 [haproxy]=18180 [haproxy_same_job]=18181 [nginx]=18182 [floor]=18183)
for name in $peers; do
  [ -n "${port[$name]:-}" ] || wrong_use "there is no peer \"$name\"; there are ${!port[*]}"
done
[ -n "${peers// /}" ] || wrong_use "-p is empty; there are ${!port[*]}"
arguments_done

PATH=$PATH:/usr/sbin
require wrk wrk
require haproxy haproxy
require nginx nginx
require taskset util-linux
require curl curl
headgate=$build/headgate floor=$build/floor_relay
[ -x "$headgate" ] && [ -x "$floor" ] || fail "no headgate and floor_relay in $build"

export HEADGATE_KEY=peers-key  # the load sends it, headgate.jsonc and haproxy_same_job.cfg know it

need_port "${port[@]}" 18090
open_workspace
on_cpu0=(taskset -c 0)

start_mock() {  # start_mock PROFILE
  start_server mock "${on_cpu0[@]}" "$headgate" mock --port 18001 --profile "$1"
  await_ok mock http://127.0.0.1:18001/health 10
}

start_peers() {
  local name
  for name in $peers; do
    case $name in
      direct) continue ;;
      floor) start_server floor "${on_cpu0[@]}" "$floor" 18183 18001 ;;
      headgate) start_server headgate "${on_cpu0[@]}" sh -c "exec '$headgate' serve --config '$here/peers/headgate.jsonc' >/dev/null" ;;
      haproxy) start_server haproxy "${on_cpu0[@]}" haproxy -db -f "$here/peers/haproxy_plain.cfg" ;;
      haproxy_same_job) start_server haproxy_same_job "${on_cpu0[@]}" sh -c "exec haproxy -db -f '$here/peers/haproxy_same_job.cfg' >/dev/null" ;;
      nginx)
        mkdir -p "$work/nginx"
        start_server nginx "${on_cpu0[@]}" nginx -p "$work/nginx" -c "$here/peers/nginx.conf"
        ;;
    esac
    local end=$((SECONDS + 10))
    until answers "$name"; do
      [ "$SECONDS" -lt "$end" ] || { cat "$work/$name.log" >&2; fail "$name did not answer"; }
      sleep 0.1
    done
  done
}

body='{"model":"chat","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"hello"}]}'
ask() { curl -s -m 5 -H "Authorization: Bearer $HEADGATE_KEY" -H 'Content-Type: application/json' -d "$body" "http://127.0.0.1:${port[$1]}/v1/chat/completions"; }
answers() { ask "$1" | grep -q '\[DONE\]'; }

# utime and stime in ticks and resident KiB of a peer; nginx works in a child
figures() {
  local pid
  pid=$(pid_of "$1")
  [ "$1" = nginx ] && pid=$(cat "/proc/$pid/task/$pid/children" | tr -d ' ')
  sed 's/.*) //' "/proc/$pid/stat" | awk '{print $12, $13}'
  awk '/^VmRSS/ {print $2}' "/proc/$pid/status"
}

measure() {  # measure PEER SCRIPT CONNECTIONS PER: appends "user system total per_second p50 p99 rss" to $work/PEER.rounds
  local name=$1 script=$2 connections=$3 per=$4 before="0 0" after="0 0 0" requests micros status ends sockets p50 p99
  [ "$name" = direct ] || before=$(figures "$name" | tr '\n' ' ')
  (cd "$here/wrk" && taskset -c 0 wrk -t 1 -c "$connections" -d "${seconds}s" --timeout 10s -s "$script.lua" \
    "http://127.0.0.1:${port[$name]}") >"$work/wrk.out" 2>&1 || { cat "$work/wrk.out" >&2; fail "wrk failed"; }
  [ "$name" = direct ] || after=$(figures "$name" | tr '\n' ' ')
  read -r _ requests micros status ends sockets _ p50 _ p99 _ < <(grep '^RESULT' "$work/wrk.out")
  [ "${requests:-0}" -gt 0 ] || { cat "$work/wrk.out" >&2; fail "wrk made no request"; }
  [ "$status$ends$sockets" = 000 ] || fail "$name: $status answers not 200, $ends without end, $sockets socket errors"
  awk -v b="$before" -v a="$after" -v hz="$hz" -v n=$((requests * per)) -v us="$micros" -v p="$p50 $p99" 'BEGIN {
    split(b, x, " "); split(a, y, " "); f = 1e6 / hz / n
    printf "%.3f %.3f %.3f %.0f %s %d\n", (y[1] - x[1]) * f, (y[2] - x[2]) * f, (y[1] + y[2] - x[1] - x[2]) * f, n * 1e6 / us, p, y[3] }' \
    >>"$work/$name.rounds"
}

median_of() { awk -v k="$2" '{print $k}' "$work/$1.rounds" >"$work/column" && median "$work/column"; }  # PEER COLUMN

profile=
begin_profile() {  # the mock's profile for a row; a new mock only when it changes
  [ "$1" = "$profile" ] && return
  [ -z "$profile" ] || { end_servers; rm -f "$work"/*.pid; }
  profile=$1
  start_mock "$profile"
  start_peers
}

for row in "${rows[@]}"; do
  kind=${row%:*} connections=${row#*:} script=${row%:*} per=1 unit=request
  [ "$kind" = paced ] && script=streamed
  if [ "$kind" = paced ]; then begin_profile paced; else begin_profile instant; fi
  if [ "$script" = streamed ]; then
    per=$(ask direct | grep -c '^data:')
    unit=event
  fi
  for name in $peers; do measure "$name" "$script" "$connections" "$per"; done  # to warm up
  rm "$work"/*.rounds
  for _ in $(seq "$rounds"); do
    for name in $peers; do measure "$name" "$script" "$connections" "$per"; done
  done
  printf '\n%-17s %12s %8s %8s %11s %8s %8s %8s  %s\n' "$kind c=$connections" "CPU us/$unit" user system "${unit}s/s" p50_us p99_us RSS_KiB \
    "headgate / it"
  for name in $peers; do
    ratio=-
    [ "$name" != direct ] && [[ " $peers " = *" headgate "* ]] &&
      ratio=$(awk -v a="$(median_of headgate 3)" -v b="$(median_of "$name" 3)" 'BEGIN {if (b > 0) printf "%.2f", a / b}')
    printf '%-17s %12.2f %8.2f %8.2f %11.0f %8.0f %8.0f %8.0f  %s\n' "$name" "$(median_of "$name" 3)" "$(median_of "$name" 1)" "$(median_of "$name" 2)" \
      "$(median_of "$name" 4)" "$(median_of "$name" 5)" "$(median_of "$name" 6)" "$(median_of "$name" 7)" "$ratio"
  done
  rm "$work"/*.rounds
done
