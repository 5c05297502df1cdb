#include "backends/mock/outbox.hpp"

#include <algorithm>

#include "backends/mock/connection.hpp"

namespace headgate::mock {

void Outbox::put(Connection& connection, Time made) {
  if (connection.place_in_outbox()) return;
  connection.place_in_outbox() = sent_ + queue_.size();
  last_turn_ = std::max(last_turn_, made) + spacing;
  queue_.push_back({&connection, last_turn_});
}

void Outbox::remove(Connection& connection) {
  if (const auto place = connection.place_in_outbox()) queue_[*place - sent_].connection = nullptr;
}

void Outbox::send() {
  if (sending_) return;
  sending_ = true;
  Time now = std::chrono::steady_clock::now();
  while (!queue_.empty()) {
    const Entry entry = queue_.front();
    if (entry.turn > now + early) {
      now = std::chrono::steady_clock::now();
      if (entry.turn > now + early) break;
    }
    queue_.pop_front();
    ++sent_;
    if (entry.connection == nullptr) continue;
    entry.connection->place_in_outbox().reset();
    entry.connection->waker().wake();
  }
  sending_ = false;
  timer_.set(queue_.empty() ? never : queue_.front().turn);
}

}  // namespace headgate::mock
