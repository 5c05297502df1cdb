// How many connections the process has open to one backend, all workers together, and the line of those who wait for
// one at the cap. A connection has its share from before it is dialled until its descriptor is closed; a share given
// back goes to the first in the line, so that none is taken past him. A mutex that dialling and closing take, and a
// request on a kept connection never.
//
//   ConnectionShare share = cap->take_or_wait(me);   // empty: at the cap, share_freed() comes later
//   link->hold(std::move(share));
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace headgate::backends {

class ConnectionCap;

// The right to one connection; given back when destroyed.
class ConnectionShare {
 public:
  ConnectionShare() = default;
  ConnectionShare(ConnectionShare&&) noexcept = default;
  ConnectionShare& operator=(ConnectionShare&& other) noexcept {
    give_back();
    of_ = std::move(other.of_);
    closing_ = other.closing_;
    return *this;
  }
  ~ConnectionShare() { give_back(); }
  explicit operator bool() const { return of_ != nullptr; }

 private:
  friend class ConnectionCap;
  explicit ConnectionShare(std::shared_ptr<ConnectionCap> of) : of_(std::move(of)) {}
  void give_back();
  std::shared_ptr<ConnectionCap> of_;
  bool closing_ = false;  // its connection was told to close
};

// A worker, to whom shares come for its waiting requests. Called on any thread.
class ShareTaker {
 public:
  virtual void share_freed(std::uint32_t slot, std::uint64_t ticket, ConnectionShare share) = 0;

 protected:
  ~ShareTaker() = default;
};

struct ShareWaiter {
  ShareTaker* worker = nullptr;
  std::uint32_t slot = 0;
  std::uint64_t ticket = 0;  // unlike any other of this worker
  bool fresh = false;        // an idle connection will not do: one has just turned out to be dead
};

class ConnectionCap : public std::enable_shared_from_this<ConnectionCap> {
 public:
  void most(std::uint32_t connections);  // 0: no cap. What is open above a lower one stays until it is closed.

  ConnectionShare take_or_wait(const ShareWaiter& who);  // at the end of the line
  void leave(const ShareWaiter& who);                    // the line; a share may be on its way all the same

  // For a worker with an idle connection: somebody waits, or more are open than a lowered cap allows. What is it to do?
  enum class Wish : std::uint8_t { keep, close, lend };
  bool pressed() const { return pressed_.load(std::memory_order_relaxed); }
  Wish wish(ConnectionShare& idle, ShareWaiter& to);  // lend: to whom, and he has left the line

  struct Figures {
    std::uint32_t open = 0, most = 0;
    std::uint64_t waits_total = 0, lent_total = 0;
  };
  Figures figures() const;

 private:
  friend class ConnectionShare;
  void give_back(std::shared_ptr<ConnectionCap> self, bool closing);
  bool room() const { return most_ == 0 || open_ < most_; }
  bool over() const { return most_ != 0 && open_ - closing_ > most_; }
  ShareWaiter pop();
  void note() { pressed_.store(over() || !line_.empty(), std::memory_order_relaxed); }

  mutable std::mutex mutex_;  // guards what is below
  std::uint32_t open_ = 0, most_ = 0;
  std::uint32_t closing_ = 0;  // of the open ones, told to close: no other worker closes one in their place
  std::uint64_t waits_ = 0, lent_ = 0;
  std::vector<ShareWaiter> line_;     // no longer than the requests in flight at this backend
  std::atomic<bool> pressed_{false};  // for who only looks
};

}  // namespace headgate::backends
