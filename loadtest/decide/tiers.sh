# What cheapest_within_budget costs against the best that could be done with the same requests: the small tier serves
# its peak all the time (its goodput alone, the best of a search over slots and loads, at most what may go there), the
# large one the rest. Tokens are weighed as they are priced.

tiers() {
  local config=$here/decide/tiers.jsonc profiles="--profile small=llama-3.1-8b-h100 --profile large=llama-70b-8xh100"
  local slots load peak=0 median good order
  for slots in 70 80 90 100 110; do
    for load in 22 26 30; do
      runs alone "$config" $profiles --rate $load --duration 300s --lengths azure-conv --slo ttft=2s,tpot=50ms \
        --set 'routes.chat.pools=["small"]' --set "pools.small.backends[0].slots=$slots" --set "pools.small.backends[1].slots=$slots"
      read -r median _ < <(over_seeds alone .goodput.per_s)
      peak=$(awk -v a="$median" -v b="$peak" 'BEGIN {print (a > b ? a : b)}')
    done
  done
  echo "the small tier alone: at most $peak/s in time"
  printf '\n%-24s %-26s %s\n' order 'in time, of all' 'cost / best'
  for order in cheapest_within_budget priority weighted fastest; do
    runs $order "$config" $profiles --workload "$here/decide/tiers_load.jsonc" --retries 2 --set routes.chat.order=$order
    good=$(over_seeds $order '[.classes[].goodput.requests] as $g | [.classes[].requests] as $r | ($g | add) / ($r | add)')
    echo "$order $good $(over_seeds $order "def weight: .prompt_tokens * 0.1 + .output_tokens * 0.4;
      ([.servers[] | weight] | add) as \$all | ([.classes[].ok] | add) as \$served
      | (\$all / \$served * ([$peak * 300, .classes.any.ok] | min)) as \$small
      | .cost_usd / ((\$small + 10 * (\$all - \$small)) / 1e6)")"
  done | awk '{printf "%-24s %.3f [%.3f %.3f]       %.3f [%.3f %.3f]\n", $1, $2, $3, $4, $5, $6, $7}'
}
