# Sourced by the scripts here: starts servers, remembers their pids, waits for them, and ends them when the script ends.
# Each server's pid is in $work/NAME.pid, so that a server restarted by someone else is found too.

fail() { echo "$(basename "$0"): $*" >&2; exit 1; }
wrong_use() { echo "$(basename "$0"): $*" >&2; exit 2; }

arguments_done() {  # all of them were looked at, nothing was started: with ARGUMENTS_ONLY set that is all
  [ -z "${ARGUMENTS_ONLY:-}" ] || exit 0
}

# next_argument LETTERS KNOWN ARGUMENT..: the first of the arguments as $option and $value, $taken words. An option is a
# letter of LETTERS with its value, "-d 10" or "-d10"; a name leaves $option empty. KNOWN says what may be given.
next_argument() {
  local letters=$1 known=$2
  option=${3:0:2} value=${3:2} taken=1
  if [[ $3 != -* ]]; then
    option= value=$3
  elif [[ $option != -[$letters] ]]; then
    wrong_use "there is no option \"$3\"; $known"
  elif [ -z "$value" ]; then
    [ $# -ge 4 ] || wrong_use "$3 needs a value; $known"
    value=$4 taken=2
  fi
}

want_count() {  # want_count OPTION VALUE: a whole number from 1 to 99999999
  [[ $2 =~ ^[1-9][0-9]{0,7}$ ]] || wrong_use "$1 is \"$2\"; a whole number from 1 to 99999999 is wanted"
}

want_seconds() {  # want_seconds OPTION VALUE: 10 or 10s
  [[ $2 =~ ^[1-9][0-9]{0,4}s?$ ]] || wrong_use "$1 is \"$2\"; whole seconds from 1 to 99999 are wanted, such as 10 or 10s"
}

# read_options 'LETTER KIND VARIABLE'.. -- ARGUMENT..: KIND is count, seconds or text; what is no option is in ${names[@]}.
read_options() {
  local -A kinds=() variables=()
  local letters= known= letter kind variable
  for (( ; $# > 0; )); do
    [ "$1" != -- ] || { shift; break; }
    read -r letter kind variable <<<"$1"
    kinds[$letter]=$kind variables[$letter]=$variable letters+=$letter known+="${known:+, }-$letter ${variable^^}"
    shift
  done
  names=()
  while [ $# -gt 0 ]; do
    next_argument "$letters" "$known may be given" "$@"
    shift "$taken"
    letter=${option#-}
    case ${letter:+${kinds[$letter]}} in
      count) want_count "$option" "$value" ;;
      seconds) want_seconds "$option" "$value"; value=${value%s} ;;
      text) ;;
      *) names+=("$value"); continue ;;
    esac
    printf -v "${variables[$letter]}" %s "$value"
  done
}

no_names() { [ ${#names[@]} = 0 ] || wrong_use "\"${names[0]}\" is one argument too many"; }

open_workspace() {  # makes $work, removed at the end; ends every server then
  work=$(mktemp -d "${TMPDIR:-/tmp}/headgate.XXXXXX") || exit 1
  trap 'end_servers; rm -rf "$work"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

need_port() {  # need_port PORT..: says which one is taken
  local port
  for port in "$@"; do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then fail "port $port is taken; free it and try again"; fi
  done
}

start_server() {  # start_server NAME COMMAND..: in the background; what it says is in $work/NAME.log
  local name=$1
  shift
  "$@" >>"$work/$name.log" 2>&1 </dev/null &
  echo $! >"$work/$name.pid"
  disown  # so that the shell says nothing when it is killed
}

pid_of() { cat "$work/$1.pid"; }

await_ok() {  # await_ok NAME URL SECONDS: until the server answers 200; fails when it ends or takes longer
  local name=$1 url=$2 end=$((SECONDS + $3))
  until [ "$(curl -s -o /dev/null -m 1 -w '%{http_code}' "$url")" = 200 ]; do
    kill -0 "$(pid_of "$name")" 2>/dev/null || { cat "$work/$name.log" >&2; fail "$name ended at its start"; }
    [ "$SECONDS" -lt "$end" ] || { tail -n 5 "$work/$name.log" >&2; fail "$name was not ready within $3 s ($url)"; }
    sleep 0.1
  done
}

stop_server() {  # stop_server NAME: until it is gone
  kill "$(pid_of "$1")"
  while kill -0 "$(pid_of "$1")" 2>/dev/null; do sleep 0.05; done
}

hz=$(getconf CLK_TCK)
cpu_ticks() { sed 's/.*) //' "/proc/$(pid_of "$1")/stat" | awk '{print $12 + $13}'; }  # of server NAME, user and system
us_each() { awk -v t="$1" -v hz="$hz" -v n="$2" 'BEGIN {printf "%.3f\n", t / hz * 1e6 / n}'; }  # us_each TICKS COUNT
median() { sort -n "$1" | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }  # median FILE, a number a line
progress() { [ ! -t 2 ] || printf '\r\033[K%s' "$1" >&2; }

end_servers() {
  local file pid
  for file in "$work"/*.pid; do
    [ -e "$file" ] && kill "$(cat "$file")" 2>/dev/null
  done
  for file in "$work"/*.pid; do  # at most 5 s each, then without asking
    [ -e "$file" ] || continue
    pid=$(cat "$file")
    for _ in $(seq 50); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -9 "$pid" 2>/dev/null
  done
}

require() {  # require COMMAND PACKAGE
  command -v "$1" >/dev/null || fail "$1 is missing; install the package $2"
}
