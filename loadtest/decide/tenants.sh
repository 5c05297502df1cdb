# Service (prompt + 2 * output tokens, by the time of the first token) per weight of three tenants who wait all along,
# from 10 s to 150 s: the largest difference between two of them over any stretch of it, and Jain's index. The virtual
# token counter's bound is 2 U, where U = max(longest prompt, 2 * most output tokens in flight) = 2 * 128 * 300 (Sheng et
# al., Fairness in Serving Large Language Models, OSDI 2024).

tenants() {
  local seed
  runs tenants "$here/decide/tenants.jsonc" --profile llama-3.1-8b-h100 --limit 30000 \
    --workload "$here/decide/tenants_load.jsonc"
  for ((seed = 1; seed <= seeds; seed++)); do
    jq -r 'select(.outcome == "ok") | [.intended_ms + .ttft_ms, .class] | @tsv' "$work/tenants.$seed.records" | sort -g |
      awk '
        BEGIN { weight["small"] = 1; weight["middle"] = 2; weight["large"] = 4
                cost["small"] = 700; cost["middle"] = 2100; cost["large"] = 3100 }
        $1 < 10000 || $1 > 150000 { next }
        { had[$2] += cost[$2] / weight[$2]; n[$2]++
          for (a in weight) for (b in weight) if (a < b) {
            d = had[a] - had[b]; pair = a b
            if (!(pair in lo)) lo[pair] = hi[pair] = 0
            if (d < lo[pair]) lo[pair] = d
            if (d > hi[pair]) hi[pair] = d
            if (hi[pair] - lo[pair] > worst) worst = hi[pair] - lo[pair]
          } }
        END { for (a in weight) { sum += had[a]; squares += had[a] ^ 2 }
              print worst / 76800, worst / 3100, sum ^ 2 / (3 * squares), n["small"], n["middle"], n["large"] }'
  done >"$work/fair"
  echo "largest difference, in U (bound: 2):     $(cut -d' ' -f1 "$work/fair" | middle)"
  echo "the same in the dearest request:         $(cut -d' ' -f2 "$work/fair" | middle)"
  echo "over the bound, of $seeds runs:                $(awk '$1 > 2' "$work/fair" | wc -l)"
  echo "Jain's index:                            $(cut -d' ' -f3 "$work/fair" | middle)"
  echo "requests served of small, middle, large: $(cut -d' ' -f4- "$work/fair" | head -1) (the first seed)"
}
