#!/bin/bash
# What the decisions are worth, in virtual time: a table each.
#   loadtest/decide.sh HEADGATE_BINARY [-n REPLICAS] [-k SEEDS] [-d SECONDS] [TABLE..]
# Tables, each a file of decide/ that says more:
#   overload  goodput at 1.2 to 10 times the capacity against the best static limit (the default; 4 minutes)
#   itl       adaptive limits against the best static one at 30, 50 and 100 ms between tokens
#   spikes    how soon goodput is back after 3x for 20 s and 10x for 60 s
#   classes   the highest class while the lowest sends twelve times as much
#   tenants   tokens per weight of tenants who always wait
#   faults    one of eight that fails, fails half of the time, or turns slow: how soon it is found, and comes back
#   tiers     what cheapest_within_budget saves against the best that could be done
# Defaults: 4 replicas of llama-3.1-8b-h100, 5 seeds, 300 s. Requests have the lengths of the Azure conversation trace,
# come as a Poisson stream, and are sent again as the official SDKs do. Good is, unless a table says otherwise: TTFT
# within 2 s, mean gap between tokens within 50 ms. Medians over the seeds, in brackets the least and the most.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/processes.sh"
binary=${1:?usage: decide.sh HEADGATE_BINARY [-n REPLICAS] [-k SEEDS] [-d SECONDS] [TABLE..]}
shift
replicas=4 seeds=5 seconds=300
read_options 'n count replicas' 'k count seeds' 'd seconds seconds' -- "$@"
known=$(cd "$here/decide" && ls ./*.sh | sed 's|^./||; s|\.sh$||' | tr '\n' ' ')
for table in "${names[@]}"; do
  [ -f "$here/decide/$table.sh" ] || wrong_use "\"$table\" is no table; these are: $known"
done
arguments_done
require jq jq
[ -x "$binary" ] || fail "$binary cannot be run"
open_workspace

# one_run NAME SEED ARGUMENT..: into $work/NAME.SEED.json and .records.
one_run() {
  local name=$1 seed=$2
  shift 2
  "$binary" simulate "$@" --seed "$seed" --json "$work/$name.$seed.json" --records "$work/$name.$seed.records" \
    >/dev/null 2>"$work/$name.$seed.err" || cat "$work/$name.$seed.err" >&2
}
export -f one_run
export binary work

# runs NAME ARGUMENT..: every seed, two at a time.
runs() {
  seq "$seeds" | xargs -P "$(nproc)" -I{} bash -c 'name=$1 seed=$2; shift 2; one_run "$name" "$seed" "$@"' run "$1" {} "${@:2}"
}

# over_seeds NAME JQ-EXPRESSION: "median least most" of it.
over_seeds() {
  local seed
  for ((seed = 1; seed <= seeds; seed++)); do jq -r "$2" "$work/$1.$seed.json"; done | middle
}
middle() { sort -g | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)], v[1], v[NR]}'; }

for table in "${names[@]:-overload}"; do
  . "$here/decide/$table.sh"
  $table
done
