// POST /admin/backends/{pool}/{backend}: drained, taken back and weighed on the running gateway.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

class ByHand : public testing::Test {
 protected:
  static nlohmann::json config_for(const ScriptedUpstream& one, const ScriptedUpstream& two) {
    auto config = basic_config({&one, &two});
    config["pools"]["p"]["balance"] = "weighted";
    config["workers"] = 2;
    return config;
  }
  Reply set(std::string_view name, std::string_view body) const {
    return gateway_.admin_post("/admin/backends/" + std::string(name), body);
  }
  // Arrivals at the first of 20 requests, each on a connection of its own so that both workers take part.
  std::size_t first_of_20() const {
    const std::size_t before = one_.arrival_count();
    for (int n = 0; n < 20; ++n) EXPECT_EQ(ask_once(gateway_.port(), chat_request(chat_body(false))).status, 200);
    return one_.arrival_count() - before;
  }
  nlohmann::json backend(std::string_view name) const {
    const nlohmann::json state = gateway_.state();
    for (const auto& one : state.at("backends"))
      if (one.at("name") == name) return one;
    return {};
  }

  ScriptedUpstream one_{good_answer()}, two_{good_answer()};
  GatewayProcess gateway_{config_for(one_, two_)};
};

TEST_F(ByHand, ADrainedBackendFinishesItsStreamAndGetsNothingNew) {
  Event go;
  one_.set_script([&go](Exchange& x) {
    x.write(stream_head());
    x.write(chunk("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n"));
    x.wait_for(go);
    x.write_last(chunk("data: [DONE]\n\n") + "0\r\n\r\n");
  });
  RawClient caller(gateway_.port());
  caller.send(chat_request(chat_body(true)));
  ASSERT_EQ(caller.read_reply(scaled(5s), [](const Reply& r) { return !content_of(r.body).empty(); }).status, 200);
  ASSERT_EQ(one_.arrival_count(), 1u);
  const Reply drained = set("p/u1", R"({"drained":true})");
  EXPECT_EQ(drained.status, 200) << drained.raw;
  EXPECT_EQ(drained.body, R"({"name":"p/u1","drained":true,"weight":null})");
  EXPECT_EQ(first_of_20(), 0u);
  EXPECT_EQ(gateway_.metric("headgate_backend_drained", {{"backend", "p/u1"}}), 1);
  EXPECT_EQ(backend("p/u1").at("drained"), true);
  EXPECT_EQ(gateway_.admin_post("/admin/reload").status, 200);
  EXPECT_EQ(first_of_20(), 0u) << "a reload leaves it drained";
  go.set();
  EXPECT_NE(caller.read_reply(scaled(5s)).body.find("[DONE]"), std::string::npos);
  one_.set_script(good_answer());
  EXPECT_EQ(set("p/u1", R"({"drained":false})").status, 200);
  EXPECT_EQ(first_of_20(), 10u);
}

TEST_F(ByHand, AWeightMovesItsShare) {
  EXPECT_EQ(first_of_20(), 10u);
  EXPECT_EQ(set("p/u1", R"({"weight":4})").body, R"({"name":"p/u1","drained":false,"weight":4})");
  EXPECT_EQ(first_of_20(), 16u);
  EXPECT_EQ(set("p/u1", R"({"weight":null})").status, 200);
  EXPECT_EQ(first_of_20(), 10u);
}

TEST_F(ByHand, MistakesAreNamed) {
  const Reply unknown = set("p/u3", R"({"drained":true})");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_NE(unknown.body.find("did you mean"), std::string::npos) << unknown.body;
  const Reply bad = set("p/u1", R"({"weight":0})");
  EXPECT_EQ(bad.status, 400);
  EXPECT_NE(bad.body.find("weight is 0"), std::string::npos) << bad.body;
  EXPECT_EQ(gateway_.admin_get("/admin/backends/p/u1").status, 405);
  EXPECT_EQ(first_of_20(), 10u);
}

}  // namespace
}  // namespace headgate::support
