# Sourced by tables of decide.sh: the best static limit, found by search.

# write_config FILE SLOTS LIMIT QUEUE ROUTE [POOL]: all from LIMIT on are members of their objects.
write_config() {
  local backends= n
  for ((n = 1; n <= replicas; n++)); do
    backends+="${backends:+, }{\"url\": \"http://127.0.0.1:$((9000 + n))\", \"slots\": $2}"
  done
  cat >"$work/$1.jsonc" <<JSON
{
  "listen": {"allow_anonymous": true},
  "pools": {"gpu": {"balance": "least_in_flight", "limit": {$3}, "queue": {$4}, ${6:+$6, }"backends": [$backends]}},
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
export seconds

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
