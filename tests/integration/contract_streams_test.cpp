// What HTTP.md promises of streams whose form is unusual, and of those that fail after their head went out.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

class ContractStreams : public testing::Test {
 protected:
  Reply ask(const std::string& bytes) const { return ask_once(gateway_.port(), bytes); }

  // No length, not to be stored, and the bytes as they came.
  static void expect_stream(const Reply& reply, const std::string& bytes) {
    EXPECT_EQ(reply.status, 200) << reply.raw;
    EXPECT_TRUE(reply.complete);
    EXPECT_EQ(reply.body, bytes);
    EXPECT_EQ(reply.head.all("cache-control"), std::vector<std::string>{"no-cache"});
    EXPECT_FALSE(reply.head.has("content-length"));
  }

  ScriptedUpstream upstream_{good_answer()};
  GatewayProcess gateway_{basic_config({&upstream_})};
};

TEST_F(ContractStreams, OfCompletionsAreThoseOfText) {
  std::string text;
  for (const char* word : {"one ", "two "})
    text += std::string(R"(data: {"object":"text_completion","choices":[{"index":0,"text":")") + word +
            "\",\"finish_reason\":null}]}\n\n";
  text += "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n" + done_event();
  upstream_.set_script(always(stream_head() + chunk(text) + final_chunk()));
  expect_stream(ask(request("POST", "/v1/completions", R"({"model":"m","prompt":"a","stream":true})")), text);
  EXPECT_EQ(upstream_.arrivals().at(0).target(), "/v1/completions");
  EXPECT_EQ(gateway_.access_lines(1)[0].value("out", 0), 2);
}

// A length, a store's directive, a parameter of the type, no chunks: the caller gets a stream all the same.
TEST_F(ContractStreams, HaveNoLengthWhateverTheBackendSays) {
  const std::string text = content_event("one") + finish_event() + done_event();
  upstream_.set_script(
      always(plain_reply(200, text, "Cache-Control: max-age=60\r\n", "Text/Event-Stream; charset=utf-8")));
  const Reply reply = ask(chat_request(chat_body(true)));
  expect_stream(reply, text);
  EXPECT_EQ(reply.head.get("content-type"), "Text/Event-Stream; charset=utf-8");
}

// Asked for as a stream, its bytes are spliced and not printed again.
TEST_F(ContractStreams, AreAskedForWithTheCallersBytes) {
  const std::string fields = R"( "stream" :true, "z":12345678901234567890123,"a":1.10e+2,"s":"\u00e9\/\ud800" , )"
                             R"("model": "m", "nested":{"stream_options":null} )";
  const std::string usage = R"("stream_options":{"include_usage":true},)";
  EXPECT_EQ(ask(chat_request("{" + fields + "}")).status, 200);
  EXPECT_EQ(upstream_.arrivals().back().body, "{" + usage + fields + "}");
  const std::string theirs = R"(,"stream_options": {"x" : 1.50,"include_usage": )";
  EXPECT_EQ(ask(chat_request("{" + fields + theirs + "false }}")).status, 200);
  EXPECT_EQ(upstream_.arrivals().back().body, "{" + fields + theirs + "true }}");
}

// Packed though nobody offered it: what has come goes on at once, the caller can read it though we cannot.
TEST_F(ContractStreams, PackedOnesPassAsTheyCome) {
  Event seen;
  upstream_.set_script([&](Exchange& x) {
    x.write(stream_head("Content-Encoding: br\r\n") + chunk("first"));
    if (x.wait_for(seen)) x.write_last(chunk("second") + final_chunk());
  });
  RawClient client(gateway_.port());
  client.send(chat_request(chat_body(true)));
  EXPECT_EQ(client.read_reply(10s, [](const Reply& r) { return r.body == "first"; }).body, "first");
  seen.set();
  const Reply reply = client.read_reply();
  expect_stream(reply, "firstsecond");
  EXPECT_EQ(reply.head.get("content-encoding"), "br");
  EXPECT_EQ(gateway_.access_lines(1)[0].value("estimated", false), true);
}

// After content another backend cannot take over: one error event ends the answer, then the connection ends.
TEST_F(ContractStreams, ThatFailAfterContentEndInOneErrorEvent) {
  const std::string content = role_event() + content_event("one ");
  struct Case {
    const char* name;
    std::string rest;
  };
  const std::vector<Case> cases{{"clean end without a finish", final_chunk()},
                                {"error event", chunk(error_event("boom"))},
                                {"error event and [DONE]", chunk(error_event("boom") + done_event()) + final_chunk()},
                                {"half an event", chunk("data: {\"choices\":[{\"del") + final_chunk()},
                                {"broken chunk", "zz\r\n"}};
  for (const auto& [name, rest] : cases) {
    upstream_.set_script([&](Exchange& x) {
      x.write(stream_head() + chunk(content) + rest);
      x.close();
    });
    RawClient client(gateway_.port());
    const Reply reply = client.ask(chat_request(chat_body(true)));
    SCOPED_TRACE(std::string(name) + ": " + reply.raw);
    EXPECT_EQ(reply.status, 200);
    EXPECT_TRUE(reply.complete);
    ASSERT_TRUE(reply.body.starts_with(content));
    const auto behind = data_of(reply.body.substr(content.size()));
    ASSERT_EQ(behind.size(), 1u);
    EXPECT_TRUE(nlohmann::json::parse(behind[0], nullptr, false).contains("error"));
    EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos);
    EXPECT_EQ(reply.body.find("finish_reason\":\""), std::string::npos);
    EXPECT_TRUE(client.closed_by_peer(scaled(2s)));
  }
}

// An event too long to be waited for has gone out in part when its backend dies: it is ended first.
TEST_F(ContractStreams, AnErrorEventStandsOnItsOwnBehindHalfAnEvent) {
  const std::string half = content_event(std::string(100 << 10, 'w')).substr(0, 90 << 10);
  for (const std::string& content : {std::string(), content_event("one ")}) {
    upstream_.set_script([&](Exchange& x) {
      x.write(stream_head() + chunk(content + half));
      x.close();
    });
    const Reply reply = ask(chat_request(chat_body(true)));
    EXPECT_TRUE(reply.complete);
    ASSERT_TRUE(reply.body.starts_with(content + half.substr(0, 64 << 10)));
    const auto events = events_of(reply.body);
    ASSERT_EQ(events.size(), content.empty() ? 2u : 3u);
    EXPECT_TRUE(events.back().starts_with(R"(data: {"error")")) << events.back();
    EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos);
  }
}

// One that comes to its end is as good as any: what fails later needs no line of ours before it.
TEST_F(ContractStreams, ALongEventIsFollowedByNoEmptyLineOfOurs) {
  const std::string text = content_event(std::string(100 << 10, 'w')) + content_event("one ");
  upstream_.set_script([&](Exchange& x) {
    x.write(stream_head() + chunk(text));
    x.close();
  });
  const Reply reply = ask(chat_request(chat_body(true)));
  ASSERT_TRUE(reply.body.starts_with(text));
  EXPECT_TRUE(reply.body.substr(text.size()).starts_with(R"(data: {"error")")) << reply.body.substr(text.size());
}

// The error event of a backend goes on unchanged, unless it says where the backend is or what its key is.
TEST_F(ContractStreams, AnErrorEventNamesNoBackend) {
  for (const std::string& secret : {std::string("nothing"), std::string("K1"), upstream_.authority()}) {
    const std::string event = error_event("boom", "at " + secret + " it failed");
    upstream_.set_script([&](Exchange& x) {
      x.write(stream_head() + chunk(content_event("one ")) + chunk(event));
      x.close();
    });
    const Reply reply = ask(chat_request(chat_body(true)));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(data_of(reply.body).size(), 2u) << reply.body;
    EXPECT_EQ(reply.body.ends_with(event), secret == "nothing") << reply.body;
    EXPECT_EQ(reply.raw.find("K1"), std::string::npos) << reply.raw;
    EXPECT_EQ(reply.raw.find(upstream_.authority()), std::string::npos) << reply.raw;
  }
}

// What has been delivered is counted, and said to be an estimate, whoever ended the stream.
TEST_F(ContractStreams, CutOnesAreCountedByWhatWasDelivered) {
  const std::string content = content_event("one ") + content_event("two ") + content_event("three ");
  for (const bool caller_leaves : {true, false}) {
    Event leave;
    upstream_.set_script([&](Exchange& x) {
      x.write(stream_head() + chunk(content));
      caller_leaves ? static_cast<void>(x.wait_until_gone()) : static_cast<void>(x.wait_for(leave));
      x.close();
    });
    RawClient client(gateway_.port());
    client.send(chat_request(chat_body(true)));
    client.read_reply(10s, [&](const Reply& r) { return r.body == content; });
    leave.set();
    if (!caller_leaves) client.read_reply();
    client.close();
    const auto line = gateway_.access_lines(caller_leaves ? 1 : 2).back();
    EXPECT_EQ(line.value("outcome", ""), caller_leaves ? "cancelled" : "cut");
    EXPECT_EQ(line.value("out", 0), 3);
    EXPECT_GT(line.value("in", 0), 0);
    EXPECT_EQ(line.value("estimated", false), true);
  }
}

TEST_F(ContractStreams, ACallerWhoLeavesBeforeTheHeadIsA499InTheLog) {
  upstream_.set_script(silent());
  RawClient client(gateway_.port());
  client.send(chat_request(chat_body(true)));
  ASSERT_TRUE(upstream_.await_arrivals(1));
  client.close();
  const auto line = gateway_.access_lines(1)[0];
  EXPECT_EQ(line.value("status", 0), 499);
  EXPECT_EQ(line.value("outcome", ""), "cancelled");
  EXPECT_EQ(line.value("out", -1), 0);
}

}  // namespace
}  // namespace headgate::support
