#!/bin/bash
# The main job on a trace: its first 1,500 requests at four times their speed, streamed, through the gateway to four
# mock processes of the demo profile; one is killed in the middle, when at least 5 streams are past their first token
# there, and restarted. Passes when nothing failed before its first token, exactly that server's streams were cut, and
# the token counts of all others are exact.
#   loadtest/main_job.sh HEADGATE_BINARY [TRACE] [JSON_FILE]      TRACE: by default the committed synthetic one
# Exit code: 0 passed, 1 failed, 2 wrong arguments.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/processes.sh"
binary=${1:?usage: main_job.sh HEADGATE_BINARY [TRACE] [JSON_FILE]}
shift
for argument in "$@"; do
  [[ $argument != -* ]] || wrong_use "there is no option \"$argument\"; a trace and a file for the summary may be given"
done
[ $# -le 2 ] || wrong_use "\"$3\" is one argument too many; a trace and a file for the summary may be given"
trace=${1:-$here/traces/synthetic_conv_1500.csv}
json=${2:-}
[ -f "$trace" ] && [ -r "$trace" ] || wrong_use "the trace $trace cannot be read"
arguments_done
require curl curl
[ -x "$binary" ] || fail "$binary cannot be run"
binary=$(readlink -f "$binary")

# main_job.jsonc has these ports.
need_port 19001 19002 19003 19004 18080 19090
open_workspace
mocks=(small_b1 small_b2 large_b1 large_b2)
for k in 0 1 2 3; do start_server "${mocks[k]}" "$binary" mock --port $((19001 + k)) --profile demo; done
for k in 0 1 2 3; do await_ok "${mocks[k]}" "http://127.0.0.1:$((19001 + k))/health" 10; done
start_server gateway "$binary" serve --config "$here/main_job.jsonc"
await_ok gateway http://127.0.0.1:18080/readyz 10

restart="'$binary' mock --port 19001 --profile demo >>'$work/small_b1.log' 2>&1 & echo \$! >'$work/small_b1.pid'"
"$binary" load --target http://127.0.0.1:18080 --model chat \
  --trace "$trace" --limit 1500 --speed 4 --timeout 90s --live --json "${json:-$work/summary.json}" --verdict \
  --event "at=1/2;label=killed small/b1 (kill -9);kill=small/b1;streams=5;run=kill -9 $(pid_of small_b1)" \
  --event "at=2/3;label=restarted small/b1;run=$restart" \
  --expect requests=1500 --expect failed_before_first_token=0 --expect refused=0 --expect wrong_count=0 \
  --expect cut_dirty=0 --expect cut_elsewhere=0 --expect kills.0.exact=true --expect 'kills.0.cut>=5'
