// A small configuration with demo model servers, for the tests of the simulator.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "config/load.hpp"
#include "loadtest/sim/simulator.hpp"

namespace headgate::loadtest {

// Pool "p" of so many servers, route "chat" to it.
struct Fleet {
  explicit Fleet(int servers, int slots, int queue_max = 1000) {
    nlohmann::json config = {{"listen", {{"allow_anonymous", true}}}};
    auto& pool = config["pools"]["p"];
    pool["queue"] = {{"requests_max", queue_max}};
    for (int n = 0; n < servers; ++n)
      pool["backends"].push_back({{"url", "http://127.0.0.1:" + std::to_string(9001 + n)}, {"slots", slots}});
    config["routes"]["chat"]["pools"] = {"p"};
    auto loaded = config::load_text(config.dump(1), [](const std::string&) { return std::nullopt; });
    EXPECT_TRUE(loaded.options);
    settings.catalog = config::make_catalog(std::move(*loaded.options), ids, 1);
    settings.classes = {{"", "chat"}};
    settings.profiles.assign(static_cast<std::size_t>(servers), *engine::find_profile("demo"));
  }
  config::IdBook ids;
  SimSettings settings;
};

}  // namespace headgate::loadtest
