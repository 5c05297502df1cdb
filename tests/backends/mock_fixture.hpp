// A mock server in this process, on free ports, driven by a thread of its own for the life of the object.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "backends/mock/server.hpp"
#include "support/http_text.hpp"
#include "support/prometheus.hpp"
#include "support/raw_client.hpp"
#include "support/waiting.hpp"

namespace headgate::mock {

using namespace std::chrono_literals;
using support::eventually;
using support::RawClient;
using support::Reply;
using support::request;
using Json = nlohmann::json;

inline const engine::Profile instant = *engine::find_profile("instant");

// 2 ms a token, no prefill time.
inline engine::Profile quick(std::uint32_t slots = 8, std::uint32_t queue_max = 100) {
  engine::Profile profile;
  profile.name = "quick";
  profile.step_fixed = 2ms;
  profile.slots = slots;
  profile.queue_max = queue_max;
  return profile;
}

class Mock {
 public:
  explicit Mock(const engine::Profile& profile, MockOptions options = {}, std::vector<PlannedControl> faults = {})
      : server_(loop_, adapt(options), {&profile, 1}, std::move(faults)) {
    std::string problem;
    if (!server_.start(problem)) ADD_FAILURE() << problem;
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~Mock() {
    loop_.post([this] { server_.stop(); });
    loop_.stop();
    thread_.join();
  }

  std::uint16_t port(std::size_t replica = 0) const { return server_.replicas()[replica]->port(); }
  std::uint16_t control_port() const { return server_.replicas()[0]->control_port(); }

  Json state(std::size_t replica = 0) const {
    return Json::parse(support::ask_once(port(replica), request("GET", "/control")).body);
  }
  // Sets a fault or clears them; the answer must be 200.
  void control(const std::string& body) const {
    const Reply reply = support::ask_once(port(), request("POST", "/control", body));
    EXPECT_EQ(reply.status, 200) << reply.body;
  }

 private:
  static MockOptions adapt(MockOptions options) {
    options.port = 0;
    return options;
  }

  backends::Loop loop_;
  Server server_;
  std::thread thread_;
};

// A chat body for model m: one user message, then `extra` fields, each led by a comma.
inline std::string chat(const std::string& content, const std::string& extra = {}) {
  return R"({"model":"m","messages":[{"role":"user","content":)" + Json(content).dump() + "}]" + extra + "}";
}

inline std::string post_chat(const std::string& content, const std::string& extra = {}) {
  return request("POST", "/v1/chat/completions", chat(content, extra));
}

inline std::string content_of(const Reply& reply) {
  return Json::parse(reply.body)["choices"][0]["message"]["content"].get<std::string>();
}

inline std::size_t content_events(const Reply& reply) {
  std::size_t n = 0;
  for (const std::string& data : support::data_of(reply.body)) {
    const Json json = Json::parse(data, nullptr, false);
    if (!json.is_object() || !json.contains("choices") || json["choices"].empty()) continue;
    const Json& choice = json["choices"][0];
    n += choice.contains("delta") && !choice["delta"].value("content", "").empty() ? 1 : 0;
  }
  return n;
}

}  // namespace headgate::mock
