#include "backends/connection_cap.hpp"

#include <optional>
#include <utility>

namespace headgate::backends {

void ConnectionShare::give_back() {
  if (of_ == nullptr) return;
  ConnectionCap& cap = *of_;
  cap.give_back(std::move(of_), std::exchange(closing_, false));
}

ShareWaiter ConnectionCap::pop() {
  const ShareWaiter first = line_.front();
  line_.erase(line_.begin());
  return first;
}

// Who waits when there is more room than before is served outside the lock: it posts to his worker.
void ConnectionCap::most(std::uint32_t connections) {
  std::vector<ShareWaiter> served;
  {
    const std::lock_guard lock(mutex_);
    most_ = connections;
    for (; !line_.empty() && room(); ++open_) served.push_back(pop());
    note();
  }
  for (const ShareWaiter& who : served) {
    who.worker->share_freed(who.slot, who.ticket, ConnectionShare(shared_from_this()));
  }
}

ConnectionShare ConnectionCap::take_or_wait(const ShareWaiter& who) {
  const std::lock_guard lock(mutex_);
  if (room()) {
    ++open_;
    return ConnectionShare(shared_from_this());
  }
  ++waits_;
  line_.push_back(who);
  note();
  return {};
}

void ConnectionCap::leave(const ShareWaiter& who) {
  const std::lock_guard lock(mutex_);
  std::erase_if(line_, [&](const ShareWaiter& one) { return one.worker == who.worker && one.ticket == who.ticket; });
  note();
}

ConnectionCap::Wish ConnectionCap::wish(ConnectionShare& idle, ShareWaiter& to) {
  const std::lock_guard lock(mutex_);
  if (!over() && line_.empty()) return Wish::keep;
  if (over() || line_.front().fresh) {
    if (!std::exchange(idle.closing_, true)) ++closing_;
    note();
    return Wish::close;
  }
  to = pop();
  ++lent_;
  note();
  return Wish::lend;
}

void ConnectionCap::give_back(std::shared_ptr<ConnectionCap> self, bool closing) {
  std::optional<ShareWaiter> next;
  {
    const std::lock_guard lock(mutex_);
    if (closing) --closing_;
    if (over() || line_.empty()) {
      --open_;
    } else {
      next = pop();
    }
    note();
  }
  if (next) next->worker->share_freed(next->slot, next->ticket, ConnectionShare(std::move(self)));
}

ConnectionCap::Figures ConnectionCap::figures() const {
  const std::lock_guard lock(mutex_);
  return {open_, most_, waits_, lent_};
}

}  // namespace headgate::backends
