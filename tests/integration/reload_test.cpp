// New configurations under traffic: case RW-34.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"
#include "support/steady_callers.hpp"

namespace headgate::support {
namespace {

class Reload : public testing::Test {
 protected:
  static nlohmann::json config_of(std::vector<const ScriptedUpstream*> upstreams) {
    auto config = basic_config(upstreams);
    config["log"]["access"] = "off";
    return config;
  }
  // The bytes of a configuration file with the running gateway's addresses.
  std::string text_of(nlohmann::json config) const {
    config["listen"]["data"] = "127.0.0.1:" + std::to_string(gateway_.port());
    config["listen"]["admin"] = "127.0.0.1:" + std::to_string(gateway_.admin_port());
    return config.dump(2);
  }
  void put(std::string_view text) const { gateway_.rewrite_config(text); }
  double version() const { return gateway_.metric("headgate_config_version"); }
  double reloads(const char* result) const { return gateway_.metric("headgate_reloads_total", {{"result", result}}); }

  // Refused: by the request in words, then by the signal; each counts once and the version stays.
  void expect_refused(const std::string& text, const std::vector<std::string>& named) {
    const double before = version(), failed = reloads("failed"), ok = reloads("ok");
    put(text);
    const Reply reply = gateway_.admin_post("/admin/reload");
    EXPECT_EQ(reply.status, 400) << reply.raw;
    for (const std::string& name : named)
      EXPECT_NE(reply.body.find(name), std::string::npos) << name << ": " << reply.body;
    EXPECT_EQ(reloads("failed"), failed + 1);
    gateway_.signal(SIGHUP);
    EXPECT_TRUE(eventually(10s, [&] { return reloads("failed") == failed + 2; }));
    const std::string reason = gateway_.state().at("reload").value("last_problem", "");
    EXPECT_NE(reason.find(named.front()), std::string::npos) << reason;
    EXPECT_EQ(version(), before);
    EXPECT_EQ(reloads("ok"), ok);
  }

  ScriptedUpstream one_{good_answer()}, two_{good_answer()}, three_{good_answer()};
  nlohmann::json original_ = config_of({&one_, &two_});
  GatewayProcess gateway_{original_};
};

nlohmann::json with_u1_for_u3(nlohmann::json config, const ScriptedUpstream& three) {
  config["pools"]["p"]["backends"].erase(0);
  config["pools"]["p"]["backends"].push_back(backend_config("u3", three.port()));
  return config;
}

// Stage: 50 requests a second throughout. In turn: (1) a file cut off half-way; (2) one well-formed but wrong (negative
// weight, unknown policy, the same upstream twice); (3) the original; (4) written in two halves 300 ms apart, with U3
// for U1, and a reload after each half: the first is refused, the second taken. No request of the run fails. (1) and
// (2) count as one failed reload each time, the version stays, the reason names the field (for (1), the line). (3)
// works without a restart. (4): within 2 s U3 has requests and U1 none; those that U1 has by then finish.
TEST_F(Reload, RW34_ABadFileChangesNothingAndAGoodOneEverything) {
  const Script good = good_answer(), late = good_answer({.delay = 2500ms});
  one_.set_script([=](Exchange& x) { x.arrival().body.find("lengthy") == std::string::npos ? good(x) : late(x); });
  SteadyCallers callers(gateway_.port(), 5, 100ms);
  const std::string whole = text_of(original_);

  expect_refused(whole.substr(0, whole.size() / 2), {":"});  // "FILE:line: ..."
  auto wrong = original_;
  wrong["pools"]["p"]["backends"][0]["weight"] = -1;
  expect_refused(text_of(wrong), {"backends[0].weight"});
  wrong = original_;
  wrong["pools"]["p"]["balance"] = "best_one";
  expect_refused(text_of(wrong), {"pools.p.balance"});
  wrong = original_;
  wrong["pools"]["p"]["backends"][1]["url"] = wrong["pools"]["p"]["backends"][0]["url"];
  expect_refused(text_of(wrong), {"backends[1].url"});
  EXPECT_EQ(version(), 1);
  EXPECT_EQ(reloads("failed"), 8);

  put(whole);
  const Reply back = gateway_.admin_post("/admin/reload");
  EXPECT_EQ(back.status, 200) << back.raw;
  EXPECT_EQ(reloads("ok"), 1);
  EXPECT_EQ(version(), 2);

  std::vector<RawClient> lengthy;  // until one of them is at U1
  const auto at_one = [&] {
    for (const Arrival& arrival : one_.arrivals())
      if (arrival.body.find("lengthy") != std::string::npos) return true;
    return false;
  };
  while (!at_one() && lengthy.size() < 20) {
    lengthy.emplace_back(gateway_.port()).send(chat_request(chat_body(false, "m", R"(,"user":"lengthy")")));
    eventually(100ms, at_one);
  }
  ASSERT_TRUE(at_one());
  const std::string next = text_of(with_u1_for_u3(original_, three_));
  put(next.substr(0, next.size() / 2));
  EXPECT_EQ(gateway_.admin_post("/admin/reload").status, 400);
  std::this_thread::sleep_for(300ms);  // the pause is the stage
  put(next);
  const Time second_half = now();
  gateway_.signal(SIGHUP);
  EXPECT_TRUE(three_.await_arrivals(1, scaled(2s)));
  EXPECT_EQ(reloads("ok"), 2);
  EXPECT_EQ(reloads("failed"), 9);
  std::this_thread::sleep_until(second_half + scaled(3s));  // long enough to see who gets none
  EXPECT_TRUE(three_.await_arrivals(20, 30s));
  callers.stop();
  EXPECT_GE(callers.answered(), 50u) << "too few requests to conclude anything";
  for (const std::string& fault : callers.faults()) ADD_FAILURE() << fault;
  for (const Arrival& arrival : one_.arrivals()) EXPECT_LE(to_ms(arrival.at - second_half), to_ms(scaled(2s)));
  for (RawClient& client : lengthy) EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_EQ(one_.abandoned().size(), 0u);
}

// One slot a pool, held by the first; another waits for it by a name that the new file has no more. The pool of one
// stays for another route: he is served. That of the other goes: he is told which model is gone.
TEST(ReloadUnderAQueue, WhoWaitsByARemovedRouteIsServedWhileItsPoolStays) {
  Event release;
  const Script held = [&, good = good_answer()](Exchange& x) {
    if (x.wait_for(release)) good(x);
  };
  ScriptedUpstream one(held), two(held);
  auto config = chain_config({&one, &two});
  for (const char* pool : {"p1", "p2"}) config["pools"][pool]["backends"][0]["slots"] = 1;
  config["routes"]["stays"] = config["routes"]["leaves"] = config["routes"]["m"];
  config["routes"].erase("m");
  config["routes"]["stays"]["pools"] = nlohmann::json::array({"p1"});
  config["routes"]["leaves"]["pools"] = nlohmann::json::array({"p2"});
  GatewayProcess gateway(config);
  std::vector<RawClient> callers;
  for (const char* model : {"stays", "leaves", "stays", "leaves"})
    callers.emplace_back(gateway.port()).send(chat_request(chat_body(false, model)));
  const auto queued = [&](const char* pool) { return gateway.metric("headgate_queued", {{"pool", pool}}); };
  ASSERT_TRUE(eventually(10s, [&] { return queued("p1") == 1 && queued("p2") == 1; }));

  auto next = config;
  next["pools"].erase("p2");
  next["routes"]["new"] = next["routes"]["stays"];
  for (const char* route : {"stays", "leaves"}) next["routes"].erase(route);
  gateway.rewrite_config(next);
  ASSERT_EQ(gateway.admin_post("/admin/reload").status, 200);
  EXPECT_EQ(queued("p1"), 1);
  release.set();
  std::vector<std::string> ends;
  for (RawClient& caller : callers) {
    const Reply reply = caller.read_reply();
    const auto body = nlohmann::json::parse(reply.body);
    ends.push_back(reply.status == 200 ? "200" : std::string(body["error"]["message"]));
  }
  std::ranges::sort(ends);
  EXPECT_EQ(ends, (std::vector<std::string>{"200", "200", "200", R"(There is no model "leaves")"}));
  EXPECT_EQ(one.arrival_count(), 2u);
  EXPECT_EQ(two.arrival_count(), 1u);
  EXPECT_EQ(error_code_of(ask_once(gateway.port(), chat_request(chat_body(false, "stays")))), "model_not_found");
}

// 64 routes of those that there ever were, and the one there is; of pools and backends only those of the file in use.
TEST(ReloadNames, AreBoundedInTheMetrics) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  GatewayProcess gateway(config);
  const auto pool = config["pools"]["p"], route = config["routes"]["m"];
  for (int n = 0; n < 70; ++n) {
    const std::string p = "p" + std::to_string(n), m = "m" + std::to_string(n);
    config["pools"] = nlohmann::json::object();
    config["routes"] = nlohmann::json::object();
    config["pools"][p] = pool;
    config["routes"][m] = route;
    config["routes"][m]["pools"] = nlohmann::json::array({p});
    gateway.rewrite_config(config);
    ASSERT_EQ(gateway.admin_post("/admin/reload").status, 200);
  }
  EXPECT_EQ(ask_once(gateway.port(), chat_request(chat_body(false, "m69"))).status, 200);
  std::map<std::string, std::set<std::string>> seen;
  for (const Sample& sample : parse_metrics(gateway.metrics_text()))
    for (const auto& [label, value] : sample.labels) seen[label].insert(value);
  EXPECT_EQ(seen["pool"], std::set<std::string>{"p69"});
  EXPECT_EQ(seen["backend"].size(), 1u);
  EXPECT_EQ(seen["route"].size(), 66u);
  EXPECT_TRUE(seen["route"].contains("m0") && seen["route"].contains("m69") && seen["route"].contains("other"));
}

// Told each time for as long as the file says other than the process does; the rest of the file is taken.
TEST(ReloadWarnings, NameWhatOnlyARestartChanges) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  config["workers"] = 1;
  GatewayProcess gateway(config);
  const auto warnings = [&] {
    const Reply reply = gateway.admin_post("/admin/reload");
    EXPECT_EQ(reply.status, 200) << reply.raw;
    return nlohmann::json::parse(reply.body).value("warnings", nlohmann::json());
  };
  EXPECT_EQ(warnings(), nlohmann::json::array());
  config["workers"] = 3;
  config["listen"]["data"] = "127.0.0.1:1";
  config["listen"]["admin"] = "127.0.0.1:2";
  config["listen"]["connections_max"] = 77;
  config["routes"]["other"] = config["routes"]["m"];
  gateway.rewrite_config(config);
  const auto expected = nlohmann::json::array(
      {"$.workers is 3 now; ignored until a restart, 1 stays",
       "$.listen.data is 127.0.0.1:1 now; ignored until a restart, 127.0.0.1:" + std::to_string(gateway.port()) +
           " stays",
       "$.listen.admin is 127.0.0.1:2 now; ignored until a restart, 127.0.0.1:" + std::to_string(gateway.admin_port()) +
           " stays"});
  for (int times = 0; times < 2; ++times) EXPECT_EQ(warnings(), expected);
  EXPECT_EQ(ask_once(gateway.port(), chat_request(chat_body(false, "other"))).status, 200);
}

}  // namespace
}  // namespace headgate::support
