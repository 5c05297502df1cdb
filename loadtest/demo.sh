#!/bin/bash
# The demo: four mock model servers, the gateway, a seeded workload like a real chat service's, one server killed at one
# third and brought back at two thirds; ends by itself with a verdict.
#   loadtest/demo.sh HEADGATE_BINARY [--keep]      --keep: stay up afterwards until Ctrl-C
# Exit code: 0 PASS, 1 FAIL or something could not start, 2 wrong arguments.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/processes.sh"
binary=${1:?usage: demo.sh HEADGATE_BINARY [--keep]}
shift
keep=
for argument in "$@"; do
  [ "$argument" = --keep ] || wrong_use "there is no \"$argument\"; only --keep may be given"
  keep=--keep
done
arguments_done
require curl curl
[ -x "$binary" ] || fail "$binary cannot be run"
binary=$(readlink -f "$binary")

# config/examples/demo.jsonc has these ports.
need_port 9001 9002 9003 9004 8080 9090
open_workspace
mocks=(small_b1 small_b2 large_b1 large_b2)
for k in 0 1 2 3; do start_server "${mocks[k]}" "$binary" mock --port $((9001 + k)) --profile demo; done
for k in 0 1 2 3; do await_ok "${mocks[k]}" "http://127.0.0.1:$((9001 + k))/health" 10; done
start_server gateway "$binary" serve --config "$here/../config/examples/demo.jsonc"
await_ok gateway http://127.0.0.1:8080/readyz 10

# 8 requests/s of the fitted lengths keep a little over half of the 64 slots busy.
restart="'$binary' mock --port 9001 --profile demo >>'$work/small_b1.log' 2>&1 & echo \$! >'$work/small_b1.pid'"
"$binary" load --target http://127.0.0.1:8080 --admin http://127.0.0.1:9090 --model chat \
  --rate 8 --duration 48s --arrivals azure-conv --lengths azure-conv --seed 2023 --timeout 30s \
  --slo ttft=1s,tpot=50ms --live --verdict --title "Headgate: 4 mock servers, 2 pools, one is killed" \
  --event "at=1/3;label=killed small/b1 (kill -9);kill=small/b1;streams=5;run=kill -9 $(pid_of small_b1)" \
  --event "at=2/3;label=restarted small/b1;run=$restart"
verdict=$?

if [ "$keep" = --keep ]; then
  cat <<'TEXT'

Everything stays up until Ctrl-C. To try:
  curl -N http://127.0.0.1:8080/v1/chat/completions -d '{"model":"chat","stream":true,"max_tokens":20,"messages":[{"role":"user","content":"hello"}]}' -H 'Content-Type: application/json'
  curl -i http://127.0.0.1:8080/v1/chat/completions -d '{"model":"chat","max_tokens":5,"messages":[{"role":"user","content":"hello"}]}' -H 'Content-Type: application/json'
  curl http://127.0.0.1:9090/admin/state
TEXT
  tail --pid="$(pid_of gateway)" -f /dev/null & wait $!  # so that a signal is heard at once
fi
exit $verdict
