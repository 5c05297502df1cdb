# At 0.8 of the capacity: how long after a spike of 3x for 20 s, and of 10x for 60 s, until the share of requests served
# in time is back at 95 % of what it was before: the first second from which it stays there for 5 s. All seeds together,
# by the second in which a request was first sent.
. "$here/static_search.sh"

spikes() {
  local config times seconds_long base
  base=$(awk -v n="$replicas" 'BEGIN {printf "%.1f", 0.8 * 11.8 * n}')
  write_config static 90 '"mode": "static", "prefill_tokens_max": 1000' "$endless" "$budget"
  write_config adaptive 1000 '"mode": "adaptive", "prefill_tokens_max": 1000' "$endless" "$budget"
  write_config no_budget 90 '"mode": "static"' "$endless" "$none"
  printf '%-12s %-14s %-22s %s\n' '' spike 'back at 95 % after' 'share in time before, during, in the first 5 s after'
  for config in static adaptive no_budget; do
    for spike in 3:20 10:60; do
      times=${spike%:*} seconds_long=${spike#*:}
      jq -n --argjson base "$base" --argjson times "$times" --arg until "$((100 + seconds_long))s" '{duration: "300s",
        classes: {all: {lengths: "azure-conv", slo: "ttft=2s,tpot=50ms",
        rate: [{per_s: $base}, {at: "100s", per_s: ($base * $times)}, {at: $until, per_s: $base}]}}}' >"$work/spike.jsonc"
      runs spike "$work/$config.jsonc" --profile llama-3.1-8b-h100 --retries 2 --workload "$work/spike.jsonc"
      cat "$work"/spike.*.records |
        jq -r '[(.intended_ms / 1000 | floor), (if .outcome == "ok" and (.resent_after_ms // 0) + .ttft_ms <= 2000 and .tpot_ms <= 50
          then 1 else 0 end)] | @tsv' |
        awk -v end=$((100 + seconds_long)) -v name="$config" -v spike="${times}x ${seconds_long} s" '
          { sent[$1]++; good[$1] += $2
            if ($1 >= 40 && $1 < 100) { before_n++; before += $2 }
            if ($1 >= 100 && $1 < end) { during_n++; during += $2 }
            if ($1 >= end && $1 < end + 5) { after_n++; after += $2 } }
          function share(s, i, g, n) { for (i = s; i < s + 5; i++) { g += good[i]; n += sent[i] } return g / n }
          END {
            for (back = end; back < 290 && !(good[back] >= 0.95 * before / before_n * sent[back] && share(back) >= 0.95 * before / before_n); back++) {}
            printf "%-12s %-14s %-22s %.3f, %.3f, %.3f\n", name, spike, back < 290 ? back - end " s" : "never", before / before_n,
              during / during_n, after / after_n }'
    done
  done
}
