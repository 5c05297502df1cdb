#include "backends/connection_cap.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <utility>
#include <vector>

namespace headgate::backends {
namespace {

using Wish = ConnectionCap::Wish;

struct Worker final : ShareTaker {
  void share_freed(std::uint32_t, std::uint64_t ticket, ConnectionShare share) override {
    tickets.push_back(ticket);
    shares.push_back(std::move(share));
  }
  // What came goes back; that may bring the next.
  void give_back() { std::exchange(shares, {}); }
  std::vector<std::uint64_t> tickets;
  std::vector<ConnectionShare> shares;
};

class Cap : public testing::Test {
 protected:
  ConnectionShare ask(std::uint64_t ticket, bool fresh = false) {
    return cap_->take_or_wait({&worker_, 0, ticket, fresh});
  }
  Wish wish(ConnectionShare& idle) { return cap_->wish(idle, to_); }
  std::uint32_t open() const { return cap_->figures().open; }

  Worker worker_;
  std::shared_ptr<ConnectionCap> cap_ = std::make_shared<ConnectionCap>();
  ShareWaiter to_;
};

TEST_F(Cap, CountsWithoutALimit) {
  {
    const auto one = ask(1), two = ask(2);
    EXPECT_TRUE(one && two);
    EXPECT_EQ(open(), 2u);
  }
  EXPECT_EQ(open(), 0u);
  EXPECT_FALSE(cap_->pressed());
}

TEST_F(Cap, AShareGivenBackGoesToTheFirstInTheLine) {
  cap_->most(1);
  auto one = ask(1);
  EXPECT_TRUE(one);
  EXPECT_FALSE(ask(2));
  EXPECT_FALSE(ask(3));
  EXPECT_FALSE(ask(4));
  cap_->leave({&worker_, 0, 3});
  EXPECT_TRUE(cap_->pressed());
  one = {};
  EXPECT_EQ(worker_.tickets, (std::vector<std::uint64_t>{2}));
  EXPECT_FALSE(ask(5)) << "the share is on its way to 2";
  worker_.give_back();  // 2 had gone meanwhile
  EXPECT_EQ(worker_.tickets, (std::vector<std::uint64_t>{2, 4}));
  EXPECT_EQ(open(), 1u);
  worker_.give_back();
  worker_.give_back();
  EXPECT_EQ(worker_.tickets.back(), 5u);
  EXPECT_EQ(cap_->figures().waits_total, 4u);
}

TEST_F(Cap, AnIdleConnectionIsLentOrClosedForWhoWantsAFreshOne) {
  cap_->most(2);
  auto idle = ask(1), other = ask(2);
  EXPECT_EQ(wish(idle), Wish::keep);
  EXPECT_FALSE(ask(3));
  EXPECT_FALSE(ask(4, true));
  EXPECT_EQ(wish(idle), Wish::lend);
  EXPECT_EQ(to_.ticket, 3u);
  EXPECT_EQ(wish(other), Wish::close);
  other = {};
  EXPECT_EQ(worker_.tickets, (std::vector<std::uint64_t>{4}));
  EXPECT_EQ(wish(idle), Wish::keep);
  EXPECT_FALSE(cap_->pressed());
  EXPECT_EQ(open(), 2u);
  EXPECT_EQ(cap_->figures().lent_total, 1u);
}

TEST_F(Cap, ALoweredCapLetsGoWhatIsOverItAndARaisedOneServesTheLine) {
  std::deque<ConnectionShare> held;
  for (std::uint64_t n = 1; n <= 4; ++n) held.push_back(ask(n));
  cap_->most(2);
  EXPECT_FALSE(ask(5));
  EXPECT_FALSE(ask(6));
  EXPECT_FALSE(ask(7));
  for (std::uint32_t left = 4; left > 2; held.pop_front(), --left) {
    EXPECT_EQ(open(), left);
    EXPECT_EQ(wish(held.front()), Wish::close);
    EXPECT_TRUE(worker_.tickets.empty());
  }
  held.pop_front();
  EXPECT_EQ(worker_.tickets, (std::vector<std::uint64_t>{5}));
  EXPECT_EQ(open(), 2u);
  cap_->most(3);
  EXPECT_EQ(worker_.tickets, (std::vector<std::uint64_t>{5, 6}));
  cap_->most(0);
  EXPECT_EQ(worker_.tickets, (std::vector<std::uint64_t>{5, 6, 7}));
  EXPECT_EQ(open(), 4u);
  EXPECT_FALSE(cap_->pressed());
}

// Two workers look before either has closed: one connection too many is one that closes.
TEST_F(Cap, OnlyAsManyAreToldToCloseAsAreOverIt) {
  auto one = ask(1), two = ask(2);
  cap_->most(1);
  EXPECT_EQ(wish(one), Wish::close);
  EXPECT_EQ(wish(two), Wish::keep);
  EXPECT_FALSE(cap_->pressed());
  one = {};
  EXPECT_EQ(wish(two), Wish::keep);
  EXPECT_EQ(open(), 1u);
  EXPECT_FALSE(ask(3));
  two = {};
  EXPECT_EQ(worker_.tickets, (std::vector<std::uint64_t>{3}));
}

}  // namespace
}  // namespace headgate::backends
