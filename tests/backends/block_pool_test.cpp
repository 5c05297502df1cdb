#include "backends/engine/block_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace headgate::engine {
namespace {

TEST(BlockPool, GivesEachBlockToOneHolderAtATime) {
  BlockPool pool(3);
  const BlockId a = pool.take(), b = pool.take(), c = pool.take();
  EXPECT_TRUE(a != b && b != c && a != c);
  EXPECT_EQ(pool.available(), 0u);
  pool.give(b);
  EXPECT_EQ(pool.available(), 1u);
  EXPECT_EQ(pool.take(), b);
}

TEST(BlockPool, KeepsWhatIsLabelledUntilItsPlaceIsNeeded) {
  BlockPool pool(3);
  const BlockId old = pool.take(), young = pool.take(), plain = pool.take();
  pool.label(old, 10);
  pool.label(young, 20);
  pool.give(old);
  pool.give(young);
  pool.give(plain);
  EXPECT_EQ(pool.available(), 3u);
  EXPECT_EQ(pool.cached(), 2u);
  EXPECT_EQ(pool.take(), plain) << "what nobody can share goes first";
  EXPECT_EQ(pool.take(), old) << "then what was freed longest ago";
  EXPECT_EQ(pool.share(10), std::nullopt);
  EXPECT_EQ(pool.share(20), young);
  EXPECT_EQ(pool.available(), 0u);
}

TEST(BlockPool, SharesABlockAmongItsHolders) {
  BlockPool pool(2);
  const BlockId block = pool.take();
  EXPECT_EQ(pool.share(7), std::nullopt) << "not full yet";
  pool.label(block, 7);
  EXPECT_EQ(pool.share(7), block);
  pool.give(block);
  EXPECT_EQ(pool.held(), 1u) << "one still holds it";
  pool.give(block);
  EXPECT_EQ(pool.held(), 0u);
  EXPECT_EQ(pool.share(7), block) << "and from the cache again";
}

TEST(BlockPool, HasOneBlockForOneText) {
  BlockPool pool(2);
  const BlockId first = pool.take(), second = pool.take();
  pool.label(first, 7);
  pool.label(second, 7);
  pool.give(second);
  pool.give(first);
  EXPECT_EQ(pool.share(7), first);
  EXPECT_EQ(pool.take(), second);
}

TEST(BlockPool, ForgetsItsCacheAndNotItsHolders) {
  BlockPool pool(2);
  const BlockId held = pool.take(), cached = pool.take();
  pool.label(held, 1);
  pool.label(cached, 2);
  pool.give(cached);
  pool.forget();
  EXPECT_EQ(pool.cached(), 0u);
  EXPECT_EQ(pool.share(1), std::nullopt);
  EXPECT_EQ(pool.held(), 1u);
  pool.label(held, 1);
  EXPECT_EQ(pool.share(1), held);
}

// Against a plain account of who holds what: blocks are conserved, and a hit has the text that was asked for.
TEST(BlockPool, ConservesBlocksThroughAnyHistory) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    BlockPool pool(1 + static_cast<std::uint32_t>(random() % 20));
    std::map<BlockId, std::uint32_t> holders;
    std::map<BlockId, TextHash> text;  // of labelled blocks, as long as they were not taken anew
    std::vector<BlockId> held;
    const auto hold = [&](BlockId block) {
      held.push_back(block);
      ++holders[block];
    };
    for (int n = 0; n < 2000; ++n) {
      const TextHash hash = random() % 30;
      switch (random() % 4) {
        case 0:
          if (pool.available() > 0) {
            const BlockId block = pool.take();
            ASSERT_EQ(holders[block], 0u) << seed;
            text.erase(block);
            hold(block);
          }
          break;
        case 1:
          if (!held.empty()) {
            const BlockId block = held[random() % held.size()];
            const bool taken = std::ranges::any_of(text, [&](const auto& known) { return known.second == hash; });
            pool.label(block, hash);
            if (!taken) text.try_emplace(block, hash);
          }
          break;
        case 2: {
          const auto hit = pool.share(hash);
          const auto known = std::ranges::find_if(text, [&](const auto& one) { return one.second == hash; });
          ASSERT_EQ(hit.has_value(), known != text.end()) << seed;
          if (hit) {
            ASSERT_EQ(*hit, known->first) << seed;
            hold(*hit);
          }
          break;
        }
        default:
          if (!held.empty()) {
            std::swap(held[random() % held.size()], held.back());
            --holders[held.back()];
            pool.give(held.back());
            held.pop_back();
          }
      }
      const auto in_use = std::ranges::count_if(holders, [](const auto& one) { return one.second > 0; });
      ASSERT_EQ(pool.held(), static_cast<std::uint32_t>(in_use)) << seed;
      ASSERT_EQ(pool.cached(), text.size()) << seed;
    }
  }
}

}  // namespace
}  // namespace headgate::engine
