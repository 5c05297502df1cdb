# Goodput at 1.2, 2, 5 and 10 times the capacity, over the peak: the highest goodput of the best static limit, with
# feasibility, at any load. "strict" counts TTFT from the caller's first send, "last" from the last one; _1000: with
# prefill_tokens_max 1000. pass_through has no limit, fifo the best one but no budget.
. "$here/static_search.sh"

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
