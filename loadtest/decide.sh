#!/bin/bash
# What the decisions are worth, in virtual time: goodput under overload against the best static limit found by search.
#   loadtest/decide.sh HEADGATE_BINARY [-n REPLICAS] [-k SEEDS] [-d SECONDS] [TABLE..]
# _1000: with prefill_tokens_max 1000. Tables: overload (default), itl. Defaults: 4 replicas of llama-3.1-8b-h100, 5 seeds, 300 s; some 4 minutes on two
# cores. Requests have the lengths of the Azure conversation trace, come as a Poisson stream, and are sent again as the
# official SDKs do. Good is: TTFT within 2 s, mean gap between tokens within 50 ms. Medians over the seeds, in brackets
# the least and the most. "strict" counts TTFT from the caller's first send, "last" from the last one.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/processes.sh"
binary=${1:?usage: decide.sh HEADGATE_BINARY [-n REPLICAS] [-k SEEDS] [-d SECONDS] [TABLE..]}
shift
replicas=4 seeds=5 seconds=300
read_options 'n count replicas' 'k count seeds' 'd seconds seconds' -- "$@"
for table in "${names[@]}"; do
  [[ $table == overload || $table == itl ]] || wrong_use "\"$table\" is no table; overload and itl are"
done
arguments_done
require jq jq
[ -x "$binary" ] || fail "$binary cannot be run"
open_workspace

# write_config FILE SLOTS LIMIT QUEUE ROUTE: the last three are members of their objects.
write_config() {
  local backends= n
  for ((n = 1; n <= replicas; n++)); do
    backends+="${backends:+, }{\"url\": \"http://127.0.0.1:$((9000 + n))\", \"slots\": $2}"
  done
  cat >"$work/$1.jsonc" <<JSON
{
  "listen": {"allow_anonymous": true},
  "pools": {"gpu": {"balance": "least_in_flight", "limit": {$3}, "queue": {$4}, "backends": [$backends]}},
  "routes": {"chat": {"pools": ["gpu"], $5}}
}
JSON
}

endless='"requests_max": 1000000, "wait_max": "1h", "bytes_max": "1TiB"' budget='"budget": {"ttft": "2s"}' none='"head_hold": "75ms"'

# play CONFIG RATE SEED ITL: a line "CONFIG RATE good strict served prompt output".
play() {
  "$binary" simulate "$work/$1.jsonc" --rate "$2" --duration "${seconds}s" --lengths azure-conv --seed "$3" --retries 2 \
    --profile llama-3.1-8b-h100 --slo "ttft=2s,tpot=$4ms" --json - 2>"$work/$1.$2.$3.err" |
    jq -r --arg c "$1" --arg r "$2" '([.servers[].prompt_tokens] | add) as $in | ([.servers[].output_tokens] | add) as $out
      | ([.ok, 1] | max) as $n
      | [$c, $r, .goodput.since_last_send_per_s, .goodput.per_s, .ok, $in / $n, $out / $n] | join(" ")' ||
    cat "$work/$1.$2.$3.err" >&2
}
export -f play
export binary work seconds

# play_all ITL CONFIG:RATE..: every seed of each, two at a time, into $work/played.
play_all() {
  local itl=$1 each seed
  shift
  for each in "$@"; do
    for ((seed = 1; seed <= seeds; seed++)); do echo "${each%%:*} ${each##*:} $seed $itl"; done
  done | xargs -P "$(nproc)" -L 1 bash -c 'play "$@"' play >"$work/played"
}

# spread CONFIG RATE COLUMN: "median least most" of what was played.
spread() {
  awk -v c="$1" -v r="$2" -v col="$3" '$1 == c && $2 == r {print $col}' "$work/played" | sort -n |
    awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)], v[1], v[NR]}'
}

# find_peak ITL: sets $peak and $peak_slots by searching static limits, with feasibility, at loads about what they carry.
find_peak() {
  local slots load at=() tried=()
  for slots in ${2:-40 60 70 80 90 100 110 120 140}; do
    write_config "static$slots" "$slots" '"mode": "static"' "$endless" "$budget"
    for load in ${3:-11 13 16}; do tried+=("static$slots:$((load * replicas))"); done
  done
  play_all "$1" "${tried[@]}"
  peak=0
  for at in "${tried[@]}"; do
    read -r median _ < <(spread "${at%%:*}" "${at##*:}" 4)
    if awk -v a="$median" -v b="$peak" 'BEGIN {exit !(a > b)}'; then
      peak=$median peak_slots=${at%%:*} peak_load=${at##*:}
      peak_slots=${peak_slots#static}
    fi
  done
  echo "peak at a mean gap of $1 ms: $peak/s with $peak_slots slots each, at $peak_load/s offered"
}

overload() {
  find_peak 50
  write_config pass_through 100000 '"mode": "static"' "$endless" "$none"
  write_config fifo "$peak_slots" '"mode": "static"' "$endless" "$none"
  write_config static "$peak_slots" '"mode": "static"' "$endless" "$budget"
  write_config static_1000 "$peak_slots" '"mode": "static", "prefill_tokens_max": 1000' "$endless" "$budget"
  write_config adaptive 1000 '"mode": "adaptive", "itl": "50ms"' "$endless" "$budget"
  write_config adaptive_1000 1000 '"mode": "adaptive", "itl": "50ms", "prefill_tokens_max": 1000' "$endless" "$budget"
  local configs="pass_through fifo static static_1000 adaptive adaptive_1000" config load rate all=()
  for config in $configs; do
    for load in 0.5 1.2 2 5 10; do
      rate=$(awk -v p="$peak" -v l="$load" 'BEGIN {printf "%.1f", p * l}')
      all+=("$config:$rate")
    done
  done
  play_all 50 "${all[@]}"
  printf '\n%-17s %5s  %-22s %-22s %s\n' "$replicas replicas" load 'last / peak' 'strict / peak' 'mean prompt, answer against offered'
  for config in $configs; do
    for load in 1.2 2 5 10; do
      rate=$(awk -v p="$peak" -v l="$load" 'BEGIN {printf "%.1f", p * l}')
      echo "$config $load $peak $(spread "$config" "$rate" 3) $(spread "$config" "$rate" 4) $(mix "$config" "$rate")"
    done
  done | awk '{printf "%-17s %4sx  %.3f [%.3f %.3f]    %.3f [%.3f %.3f]    %s\n", $1, $2, $4/$3, $5/$3, $6/$3, $7/$3, $8/$3, $9/$3, $10 " " $11}'
}

# mix CONFIG RATE: prompt and answer tokens that servers worked on for each request served, against the same at half the
# capacity, where nothing is refused.
mix() {
  local half
  half=$(awk -v p="$peak" 'BEGIN {printf "%.1f", p * 0.5}')
  for col in 6 7; do
    awk -v a="$(spread "$1" "$2" $col)" -v b="$(spread static "$half" $col)" 'BEGIN {printf "%+.1f%% ", 100 * (a / b - 1)}'
  done
}

itl() {
  local gap all slots
  for gap in 30 50 100; do
    if [ $gap = 30 ]; then slots="20 30 40 50 60 70 80"; elif [ $gap = 50 ]; then slots="70 80 90 100 110 120"; else slots="140 160 180 200 220 240 260"; fi
    find_peak $gap "$slots" "9 12 16"
    write_config adaptive 1000 "\"mode\": \"adaptive\", \"itl\": \"${gap}ms\"" "$endless" "$budget"
    write_config adaptive_1000 1000 "\"mode\": \"adaptive\", \"itl\": \"${gap}ms\", \"prefill_tokens_max\": 1000" "$endless" "$budget"
    play_all $gap "adaptive:$peak_load" "adaptive_1000:$peak_load"
    for all in adaptive adaptive_1000; do
      spread $all "$peak_load" 4 | awk -v c=$all -v p="$peak" '{printf "  %-17s %.3f [%.3f %.3f] of it\n", c, $1 / p, $2 / p, $3 / p}'
    done
  done
}

for table in "${names[@]:-overload}"; do $table; done
