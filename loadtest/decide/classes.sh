# Share of the highest class served in time while the lowest sends twelve times as much for a minute: with classes, with
# adaptive limits, and with everybody in one class. Its second figure: of those who came during that minute.
. "$here/static_search.sh"

classes() {
  local load=$here/decide/classes_load.jsonc config
  write_config static 90 '"mode": "static", "prefill_tokens_max": 1000' "$endless" "$budget"
  write_config adaptive 1000 '"mode": "adaptive", "prefill_tokens_max": 1000' "$endless" "$budget"
  sed 's/"sheddable"/"interactive"/' "$load" >"$work/one_class.jsonc"
  printf '%-22s %-28s %-28s %s\n' '' 'highest, in time' 'during the spike' 'lowest, in time'
  for config in static adaptive 'static one_class'; do
    set -- $config
    runs "$1${2:-}" "$work/$1.jsonc" --profile llama-3.1-8b-h100 --retries 2 --workload "$([ $# = 2 ] && echo "$work/$2.jsonc" || echo "$load")"
    echo "$1${2:+,$2}" $(over_seeds "$1${2:-}" ".classes.top | .goodput.requests / .requests") \
      $(for ((seed = 1; seed <= seeds; seed++)); do
        jq -s '[.[] | select(.class == "top" and .intended_ms >= 100000 and .intended_ms < 160000)] | (map(select(
          .outcome == "ok" and (.resent_after_ms // 0) + .ttft_ms <= 2000 and .tpot_ms <= 50)) | length) / length' "$work/$1${2:-}.$seed.records"
      done | middle) $(over_seeds "$1${2:-}" ".classes.lowest | .goodput.requests / .requests")
  done | awk '{printf "%-22s %.4f [%.4f %.4f]     %.4f [%.4f %.4f]     %.3f [%.3f %.3f]\n", $1, $2, $3, $4, $5, $6, $7, $8, $9, $10}'
}
