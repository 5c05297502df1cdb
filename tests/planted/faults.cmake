# Faults planted into a copy of policies/, one at a time, to prove that the books of the seeded worlds catch them.
# plant(NAME FILE TEXT FAULTY): TEXT stands in FILE once; FAULTY takes its place, where PLANTED is true in a run with that
# fault and false in all others.
plant(slot_kept_when_an_attempt_fails dispatch_end.cpp
  [[loads.give_back(e);]]
  [[if (!PLANTED || succeeded(outcome)) loads.give_back(e);]])
plant(slot_given_back_twice_on_cancel dispatch_end.cpp
  [[loads.give_back(e);]]
  [[loads.give_back(e);
  if (PLANTED && outcome.end == End::cancelled && loads[e].in_flight > 0) loads.give_back(e);]])
plant(caller_gone_forgotten_while_queued dispatch_end.cpp
  [[  } else {
    release(slot);
  }
}]]
  [[  } else if (!PLANTED || records[slot].stage != Stage::waiting) {
    release(slot);
  }
}]])
plant(released_while_it_runs dispatch_end.cpp
  [[records[slot].gone = true;]]
  [[records[slot].gone = true; if (PLANTED) release(slot);]])
plant(record_kept_when_the_caller_left dispatch_end.cpp
  [[if (record.gone || off || outcome.end == End::ok) {]]
  [[if (PLANTED && off) { record.stage = Stage::free; } else if (record.gone || off || outcome.end == End::ok) {]])
plant(tried_backends_forgotten dispatch_end.cpp
  [[record.tried[record.tried_n++] = record.endpoint;]]
  [[if (!PLANTED) record.tried[record.tried_n++] = record.endpoint;]])
plant(retry_not_paid_for dispatch_end.cpp
  [[return routes[record.route].retry_budget.withdraw();]]
  [[return PLANTED || routes[record.route].retry_budget.withdraw();]])
plant(free_retry_every_time dispatch_end.cpp
  [[record.free_retry_used = true;]]
  [[record.free_retry_used = !PLANTED;]])
plant(tried_again_after_content dispatch_end.cpp
  [[if (record.committed || route.gone()]]
  [[if ((!PLANTED && record.committed) || route.gone()]])
plant(one_attempt_too_many retry.cpp
  [[if (attempts >= options.attempts_max) return false;]]
  [[if (attempts >= options.attempts_max + (PLANTED ? 1 : 0)) return false;]])
plant(retry_budget_never_empty retry.cpp
  [[credit_ = std::max(0.0, credit_ - 1);]]
  [[if (!PLANTED) credit_ = std::max(0.0, credit_ - 1);]])
plant(unlink_forgotten dispatch_wait.cpp
  [[for (std::uint32_t i = 0; i < record.links_n; ++i) {]]
  [[for (std::uint32_t i = PLANTED && record.links_n > 1 ? 1 : 0; i < record.links_n; ++i) {]])
plant(alarm_kept_when_it_starts dispatch_wait.cpp
  [[  record.links_n = 0;
  request_alarms.clear(slot);]]
  [[  record.links_n = 0;
  if (!PLANTED) request_alarms.clear(slot);]])
plant(alarm_never_set dispatch_wait.cpp
  [[request_alarms.set(slot, std::min(record.wait_by, spill));]]
  [[if (!PLANTED) request_alarms.set(slot, std::min(record.wait_by, spill));]])
plant(bounds_of_the_queue_forgotten dispatch_wait.cpp
  [[  ++waiting;
  link_allowed(now, slot, is_new(record.lane));]]
  [[  ++waiting;
  link_allowed(now, slot, !PLANTED && is_new(record.lane));]])
plant(waits_past_its_deadline dispatch_wait.cpp
  [[std::min(start_by, after(record.queued_at, wait_max(pool, record.klass)))]]
  [[std::min(PLANTED ? never : start_by, after(record.queued_at, wait_max(pool, record.klass)))]])
plant(answer_leaves_its_record dispatch_wait.cpp
  [[  orders.push_back({records[slot].owner, records[slot].id, answer});
  release(slot);]]
  [[  orders.push_back({records[slot].owner, records[slot].id, answer});
  if (!PLANTED || answer.code != Code::no_healthy_backend) release(slot);]])
plant(answered_twice dispatch_wait.cpp
  [[  orders.push_back({records[slot].owner, records[slot].id, answer});]]
  [[  orders.push_back({records[slot].owner, records[slot].id, answer});
  if (PLANTED && answer.code == Code::deadline_exceeded) orders.push_back(orders.back());]])
plant(bytes_kept_when_unlinked queue.cpp
  [[queue.bytes_ -= bytes;]]
  [[if (!PLANTED) queue.bytes_ -= bytes;]])
plant(freed_slot_serves_nobody dispatch_end.cpp
  [[  if (lost(before, endpoints[e].standing)) reconsider_waiting(now, e, orders);
  serve(now, e, orders);
}]]
  [[  if (lost(before, endpoints[e].standing)) reconsider_waiting(now, e, orders);
  if (!PLANTED) serve(now, e, orders);
}]])
plant(over_the_limit dispatch_health.cpp
  [[now.eligible && !health.held_back() && loads[e].free() &&]]
  [[now.eligible && !health.held_back() && (PLANTED || loads[e].free()) &&]])
plant(alarm_heap_loses_one ranking.cpp
  [[if (last.key == key) return;]]
  [[if (last.key == key || PLANTED) return;]])
plant(drained_by_hand_still_serves dispatch_health.cpp
  [[const bool used = endpoint.planned && !endpoint.drained;]]
  [[const bool used = endpoint.planned && (PLANTED || !endpoint.drained);]])
