# One of eight replicas fails at 100 s, at 0.6 of the capacity: by hard errors, by errors on half of its requests, by
# steps that take five times as long; at 200 s it is whole again. From when on its share of the new attempts stays
# under 5 % (of the 5 s that follow, until the end of the fault), what it has from 130 s to 200 s, when it has 90 % of an equal
# share again (over 5 s), and the p99 of TTFT from 200 s to 230 s against that before the fault. Then, without a fault
# and at 0.9 of the capacity, how often healthy replicas are taken for slow.
faults() {
  local fault seed rate=56
  local replicas=8
  . "$here/static_search.sh"
  write_config eight 90 '"mode": "static", "prefill_tokens_max": 1000' "$endless" "$budget" '"health": {"eject_max": "10s"}'
  printf '%-8s %-26s %-26s %-26s %s\n' '' 'under 5 % after, s' 'steady share, %' '90 % again after, s' 'p99 TTFT / before'
  for fault in 'hard do=storm;status=500' 'half do=storm;status=500;share=0.5' 'slow do=slow;factor=5'; do
    seq "$seeds" |
      xargs -P "$(nproc)" -I{} bash -c '"$binary" simulate "$work/eight.jsonc" --profile llama-3.1-8b-h100 --retries 2 --rate '$rate' \
        --duration 280s --lengths azure-conv --seed {} --slo ttft=2s,tpot=50ms --fault "at=100s;backend=gpu/b1;'"${fault#* }"';for=100s" \
        --attempts "$work/fault.{}.csv" --records "$work/fault.{}.records" >/dev/null 2>"$work/fault.err" || cat "$work/fault.err" >&2'
    for ((seed = 1; seed <= seeds; seed++)); do
      awk -F, -v OFS=' ' 'NR > 1 && $1 >= 95000 && $3 !~ /^is/ {
          tenth = int($1 / 100); all[tenth]++; mine[tenth] += $2 == "gpu/b1"
          if ($1 >= 130000 && $1 < 200000) { steady_all++; steady += $2 == "gpu/b1" } }
        function share(from, tenths, i, a, m) { for (i = from; i < from + tenths; i++) { a += all[i]; m += mine[i] } return a ? m / a : 0 }
        END {
          for (t = 1950; t > 1000 && share(t, 50) < 0.05; t--) {}
          for (back = 2000; back < 2750 && share(back, 50) < 0.9 / 8; back++) {}
          print t <= 1000 ? 0 : (t + 1 - 1000) / 10, 100 * steady / steady_all, (back - 2000) / 10 }' "$work/fault.$seed.csv"
    done >"$work/fault.figures"
    for ((seed = 1; seed <= seeds; seed++)); do
      jq -r 'select(.outcome == "ok") | [.intended_ms, .ttft_ms] | @tsv' "$work/fault.$seed.records" | sort -k2 -g |
        awk '$1 >= 40000 && $1 < 100000 {b[++n] = $2} $1 >= 200000 && $1 < 230000 {a[++m] = $2}
          END {print a[int(0.99 * m)] / b[int(0.99 * n)]}'
    done >"$work/fault.p99"
    echo "${fault%% *} $(for n in 1 2 3; do cut -d' ' -f$n "$work/fault.figures" | middle; done | tr '\n' ' ') $(middle <"$work/fault.p99")"
  done | awk '{printf "%-8s %5.1f [%.1f %.1f]            %6.2f [%.2f %.2f]         %6.1f [%.1f %.1f]          %.2f [%.2f %.2f]\n", $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13}'
}
