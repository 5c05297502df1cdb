# Adaptive limits, which are told the gap, against the best static one at the same load.
. "$here/static_search.sh"

itl() {
  local gap all slots
  for gap in 30 50 100; do
    if [ $gap = 30 ]; then slots="20 30 40 50 60 70 80"; elif [ $gap = 50 ]; then slots="70 80 90 100 110 120"; else slots="140 160 180 200 220 240 260"; fi
    find_peak $gap "$slots" "9 12 16"
    write_config adaptive 1000 "\"mode\": \"adaptive\", \"itl\": \"${gap}ms\"" "$endless" "$budget"
    write_config adaptive_1000 1000 "\"mode\": \"adaptive\", \"itl\": \"${gap}ms\", \"prefill_tokens_max\": 1000" "$endless" "$budget"
    play_all $gap "adaptive:$peak_load" "adaptive_1000:$peak_load"
    for all in adaptive adaptive_1000; do
      spread $all "$peak_load" 4 | awk -v c=$all -v p="$peak" '{printf "  %-17s %.3f [%.3f %.3f] of it\n", c, $1 / p, $2 / p, $3 / p}'
    done
  done
}
