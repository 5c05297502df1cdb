// The mock server's answers over real sockets: exact counts, exact streams, the same text everywhere.
#include "backends/mock/server.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "mock_fixture.hpp"
#include "policies/base/tokens.hpp"

namespace headgate::mock {
namespace {

Json expected_usage(std::uint32_t prompt, std::uint32_t completion) {
  return {{"prompt_tokens", prompt},
          {"completion_tokens", completion},
          {"total_tokens", prompt + completion},
          {"prompt_tokens_details", {{"cached_tokens", 0}}}};
}

TEST(MockServer, AnswersAUnaryChatWithExactUsage) {
  for (const engine::Profile& profile : {instant, quick()}) {
    Mock mock(profile);
    for (const std::uint32_t n : {1u, 2u, 40u}) {
      const Reply reply =
          support::ask_once(mock.port(), post_chat("one two  three", ",\"max_tokens\":" + std::to_string(n)));
      ASSERT_EQ(reply.status, 200) << reply.raw;
      EXPECT_EQ(reply.head.get("content-type"), "application/json");
      const Json body = Json::parse(reply.body);
      EXPECT_EQ(body["object"], "chat.completion");
      EXPECT_EQ(body["model"], "m");
      EXPECT_EQ(body["usage"], expected_usage(3, n));
      EXPECT_EQ(count_words(content_of(reply)), n);
      EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
      EXPECT_EQ(body["choices"][0]["message"]["role"], "assistant");
    }
  }
}

TEST(MockServer, AnUncappedAnswerHasANaturalLengthAndStops) {
  Mock mock(instant);
  std::set<std::uint32_t> lengths;
  for (int i = 0; i < 20; ++i) {
    const Reply reply = support::ask_once(mock.port(), post_chat("question " + std::to_string(i)));
    const Json body = Json::parse(reply.body);
    const std::uint32_t n = count_words(content_of(reply));
    EXPECT_GE(n, 16u);
    EXPECT_LE(n, 256u);
    EXPECT_EQ(body["usage"], expected_usage(2, n));
    EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
    lengths.insert(n);
  }
  EXPECT_GT(lengths.size(), 10u);
}

// The whole stream, byte for byte, apart from its id.
TEST(MockServer, StreamsChatEventsInTheExactShape) {
  for (const engine::Profile& profile : {instant, quick()}) {
    Mock mock(profile);
    const std::string text = content_of(support::ask_once(mock.port(), post_chat("hello", R"(,"max_tokens":3)")));
    const std::size_t first = text.find(' '), second = text.find(' ', first + 1);
    for (const bool usage : {false, true}) {
      const Reply reply = support::ask_once(
          mock.port(), post_chat("hello", std::string(R"(,"max_tokens":3,"stream":true)") +
                                              (usage ? R"(,"stream_options":{"include_usage":true})" : "")));
      ASSERT_EQ(reply.status, 200);
      EXPECT_TRUE(reply.complete);
      EXPECT_EQ(reply.head.get("content-type"), "text/event-stream");
      EXPECT_EQ(reply.head.get("transfer-encoding"), "chunked");
      EXPECT_FALSE(reply.head.has("content-length"));
      const std::string id = Json::parse(support::data_of(reply.body)[0])["id"].get<std::string>();
      EXPECT_TRUE(id.starts_with("chatcmpl-"));
      const std::string lead = R"(data: {"id":")" + id +
                               R"(","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[)";
      const auto event = [&](const std::string& delta, const std::string& reason) {
        return lead + R"({"index":0,"delta":)" + delta + R"(,"logprobs":null,"finish_reason":)" + reason + "}]}\n\n";
      };
      const auto word = [&](const std::string& w) { return event(R"({"content":")" + w + R"("})", "null"); };
      std::string expected = event(R"({"role":"assistant","content":""})", "null") + word(text.substr(0, first)) +
                             word(text.substr(first, second - first)) + word(text.substr(second)) +
                             event("{}", R"("length")");
      if (usage) {
        expected += lead + R"(],"usage":{"prompt_tokens":1,"completion_tokens":3,"total_tokens":4,)" +
                    R"("prompt_tokens_details":{"cached_tokens":0}}})" + "\n\n";
      }
      EXPECT_EQ(reply.body, expected + "data: [DONE]\n\n");
    }
  }
}

TEST(MockServer, EveryEventIsAChunkOfItsOwn) {
  Mock mock(quick());
  const Reply reply = support::ask_once(mock.port(), post_chat("hello", R"(,"max_tokens":5,"stream":true)"));
  std::string_view rest = std::string_view(reply.raw).substr(reply.raw.find("\r\n\r\n") + 4);
  std::size_t chunks = 0;
  for (;; ++chunks) {
    const std::size_t size = std::stoul(std::string(rest.substr(0, rest.find("\r\n"))), nullptr, 16);
    rest.remove_prefix(rest.find("\r\n") + 2);
    if (size == 0) break;
    const std::string_view event = rest.substr(0, size);
    EXPECT_TRUE(event.starts_with("data: "));
    EXPECT_EQ(event.find("\n\n"), size - 2);
    rest.remove_prefix(size + 2);
  }
  EXPECT_EQ(chunks, 1u + 5 + 1 + 1);
  EXPECT_EQ(rest, "\r\n");
}

TEST(MockServer, TokensComeOneStepApart) {
  engine::Profile profile = quick();
  profile.step_fixed = 20ms;
  profile.prefill_per_token = 10ms;  // 5 words: 50 ms
  Mock mock(profile);
  const Reply reply =
      support::ask_once(mock.port(), post_chat("one two three four five", R"(,"max_tokens":6,"stream":true)"));
  EXPECT_GE(reply.head_at - reply.sent, 49ms);
  const std::size_t first = reply.body.find("\"content\":\"", reply.body.find("\"content\":\"\"") + 1);
  EXPECT_GE(reply.arrival_of(first) - reply.sent, 69ms);
  EXPECT_GE(reply.took(), 169ms);
  EXPECT_LE(reply.took(), support::scaled(170ms + 2s));  // a busy machine may be late
}

TEST(MockServer, CompletionsContinueThePrompt) {
  Mock mock(instant);
  const auto ask = [&](const std::string& prompt, int n, bool stream = false) {
    return support::ask_once(mock.port(),
                             request("POST", "/v1/completions",
                                     R"({"model":"m","prompt":)" + Json(prompt).dump() + R"(,"max_tokens":)" +
                                         std::to_string(n) + (stream ? R"(,"stream":true})" : "}")));
  };
  const auto text = [](const Reply& reply) { return Json::parse(reply.body)["choices"][0]["text"].get<std::string>(); };
  const std::string whole = text(ask("Once upon a time", 20));
  EXPECT_EQ(count_words(whole), 20u);
  EXPECT_EQ(whole.front(), ' ');
  std::string so_far;
  for (int done = 1; done < 20; ++done) {
    so_far = whole.substr(0, whole.find(' ', so_far.size() + 1));
    EXPECT_EQ(so_far + text(ask("Once upon a time" + so_far, 20 - done)), whole);
  }
  std::string streamed;
  const auto events = support::data_of(ask("Once upon a time", 20, true).body);
  ASSERT_EQ(events.size(), 20u + 1 + 1);
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    const Json event = Json::parse(events[i]);
    EXPECT_EQ(event["object"], "text_completion");
    streamed += event["choices"][0]["text"].get<std::string>();
    EXPECT_EQ(event["choices"][0]["finish_reason"], i == 20 ? Json("length") : Json(nullptr));
  }
  EXPECT_EQ(streamed, whole);
}

TEST(MockServer, AnotherReplicaResumesAChatToTheSameText) {
  MockOptions options;
  options.replicas = 2;
  Mock mock(instant, options);
  const std::string whole = content_of(support::ask_once(mock.port(0), post_chat("tell me")));
  const std::string half = whole.substr(0, whole.find(' ', whole.size() / 2));
  const std::string body = R"({"model":"m","messages":[{"role":"user","content":"tell me"},)"
                           R"({"role":"assistant","content":")" +
                           half + R"("}]})";
  const Reply rest = support::ask_once(mock.port(1), request("POST", "/v1/chat/completions", body));
  EXPECT_EQ(half + content_of(rest), whole);
  EXPECT_EQ(Json::parse(rest.body)["choices"][0]["finish_reason"], "stop");
}

TEST(MockServer, TheSameRequestGetsTheSameBytesFromEveryReplicaAndProfile) {
  MockOptions options;
  options.replicas = 2;
  Mock one(instant, options), two(quick(), options);
  const std::string ask = post_chat("hello world", R"(,"max_tokens":30,"stream":true)");
  const std::string body = support::ask_once(one.port(0), ask).body;
  EXPECT_EQ(support::ask_once(one.port(0), ask).body, body);
  EXPECT_EQ(support::ask_once(one.port(1), ask).body, body);
  EXPECT_EQ(support::ask_once(two.port(0), ask).body, body);
}

TEST(MockServer, EmbeddingsAreDeterministicInBothEncodings) {
  Mock mock(quick());
  const auto ask = [&](const std::string& rest) {
    return Json::parse(
        support::ask_once(mock.port(), request("POST", "/v1/embeddings", R"({"model":"m",)" + rest + "}")).body);
  };
  const Json floats = ask(R"("input":["one two","three"],"dimensions":5)");
  EXPECT_EQ(floats["usage"], (Json{{"prompt_tokens", 3}, {"total_tokens", 3}}));
  ASSERT_EQ(floats["data"].size(), 2u);
  EXPECT_EQ(floats["data"][1]["index"], 1);
  EXPECT_EQ(floats["data"][0]["embedding"].size(), 5u);
  EXPECT_NE(floats["data"][0]["embedding"], floats["data"][1]["embedding"]);
  EXPECT_EQ(ask(R"("input":"three","dimensions":5)")["data"][0]["embedding"], floats["data"][1]["embedding"]);

  const std::string text = ask(R"("input":"three","dimensions":5,"encoding_format":"base64")")["data"][0]["embedding"];
  ASSERT_EQ(text.size(), 28u);  // 20 bytes
  std::string bytes;
  std::uint32_t bits = 0, held = 0;
  for (const char c : text.substr(0, 27)) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bits = bits << 6 | static_cast<std::uint32_t>(digits.find(c));
    held += 6;
    if (held >= 8) bytes.push_back(static_cast<char>(bits >> (held -= 8)));
  }
  ASSERT_EQ(bytes.size(), 20u);
  for (std::size_t i = 0; i < 5; ++i) {
    float value = 0;
    std::memcpy(&value, bytes.data() + 4 * i, 4);
    EXPECT_FLOAT_EQ(value, floats["data"][1]["embedding"][i].get<float>());
  }
}

TEST(MockServer, ListsItsModelsAndKnowsNoOthers) {
  MockOptions options;
  options.models = {"small", "large\"quoted\""};
  Mock mock(instant, options);
  const Json list = Json::parse(support::ask_once(mock.port(), request("GET", "/v1/models")).body);
  ASSERT_EQ(list["data"].size(), 2u);
  EXPECT_EQ(list["data"][1]["id"], options.models[1]);
  EXPECT_EQ(Json::parse(support::ask_once(mock.port(), request("GET", "/v1/models/small")).body)["id"], "small");
  const Reply unknown = support::ask_once(mock.port(), request("GET", "/v1/models/huge"));
  EXPECT_EQ(unknown.status, 404);
  const Reply refused = support::ask_once(mock.port(), post_chat("hi"));
  EXPECT_EQ(refused.status, 404);
  EXPECT_EQ(support::plain_error_fault(refused), "");
  EXPECT_EQ(support::error_code_of(refused), "model_not_found");
}

TEST(MockServer, EchoesAModelNameThatNeedsEscapes) {
  Mock mock(instant);
  const Reply reply = support::ask_once(
      mock.port(), request("POST", "/v1/chat/completions",
                           R"({"model":"a\"\\\u0001b","messages":[{"role":"user","content":"hi"}],"max_tokens":1})"));
  EXPECT_EQ(Json::parse(reply.body)["model"], "a\"\\\001b");
}

TEST(MockServer, BadRequestsGetPlainErrorsAndTheNextIsServed) {
  Mock mock(instant);
  RawClient client(mock.port());
  struct Case {
    std::string bytes;
    int status;
  };
  const Case cases[] = {
      {request("POST", "/v1/chat/completions", "{"), 400},
      {request("POST", "/v1/chat/completions", R"({"model":"m"})"), 400},
      {request("POST", "/v1/chat/completions", R"({"model":"m","messages":3})"), 400},
      {request("GET", "/v1/chat/completions"), 405},
      {request("POST", "/health", "{}"), 405},
      {request("GET", "/nowhere"), 404},
      {request("POST", "/control", R"({"fault":"hungry"})"), 400},
  };
  for (const Case& c : cases) {
    const Reply reply = client.ask(c.bytes);
    EXPECT_EQ(reply.status, c.status) << c.bytes;
    EXPECT_EQ(support::plain_error_fault(reply), "");
  }
  EXPECT_EQ(client.ask(post_chat("hi")).status, 200);
}

TEST(MockServer, BrokenHttpIsAnsweredAndClosed) {
  Mock mock(instant);
  for (const std::string bytes :
       {"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: a\r\n\r\n",
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    RawClient client(mock.port());
    const Reply reply = client.ask(bytes);
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(support::plain_error_fault(reply), "");
    EXPECT_TRUE(client.closed_by_peer(5s));
  }
}

TEST(MockServer, PipelinedRequestsAreAnsweredInOrder) {
  for (const engine::Profile& profile : {instant, quick()}) {
    Mock mock(profile);
    RawClient client(mock.port());
    std::string bytes;
    for (int n = 1; n <= 5; ++n) bytes += post_chat("hi", ",\"max_tokens\":" + std::to_string(n));
    bytes += post_chat("hi", R"(,"max_tokens":6,"stream":true)");
    client.send(bytes + request("GET", "/health"));
    for (std::uint32_t n = 1; n <= 5; ++n) EXPECT_EQ(count_words(content_of(client.read_reply())), n);
    EXPECT_EQ(content_events(client.read_reply()), 6u);
    EXPECT_EQ(client.read_reply().body, R"({"status":"ok"})");
  }
}

TEST(MockServer, TakesChunkedAndSlowlyWrittenBodies) {
  Mock mock(instant);
  const std::string body = chat("one two three", R"(,"max_tokens":2)");
  char size[16];
  std::snprintf(size, sizeof size, "%zx", body.size() - 10);
  const std::string bytes = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\na\r\n" +
                            body.substr(0, 10) + "\r\n" + size + "\r\n" + body.substr(10) + "\r\n0\r\n\r\n";
  RawClient client(mock.port());
  EXPECT_EQ(Json::parse(client.ask(bytes).body)["usage"], expected_usage(3, 2));
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < bytes.size(); at += 7) pieces.push_back(bytes.substr(at, 7));
  client.send_pieces(pieces, 1ms);
  EXPECT_EQ(Json::parse(client.read_reply().body)["usage"], expected_usage(3, 2));
}

TEST(MockServer, TakesALargeBody) {
  Mock mock(instant);
  std::string words;
  for (int i = 0; i < 400'000; ++i) words += "word ";
  const Reply reply = support::ask_once(mock.port(), post_chat(words, R"(,"max_tokens":1)"), 30s);
  EXPECT_EQ(Json::parse(reply.body)["usage"], expected_usage(400'000, 1));
}

TEST(MockServer, OldCallersGetAStreamThatEndsWithTheConnection) {
  Mock mock(quick());
  const std::string body = chat("hi", R"(,"max_tokens":4,"stream":true)");
  RawClient client(mock.port());
  const Reply reply = client.ask(
      "POST /v1/chat/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_EQ(reply.status, 200);
  EXPECT_FALSE(reply.head.has("transfer-encoding"));
  EXPECT_TRUE(reply.closed);
  EXPECT_EQ(content_events(reply), 4u);
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
}

TEST(MockServer, InvitesABodyThatIsAnnounced) {
  Mock mock(instant);
  RawClient client(mock.port());
  const std::string body = chat("hi", R"(,"max_tokens":1)");
  client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n");
  const support::Received invited = support::receive(client.socket(), after(support::now(), 5s));
  EXPECT_EQ(invited.bytes, "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(client.ask(body).status, 200);
}

TEST(MockServer, ClosesWhenAsked) {
  Mock mock(instant);
  RawClient client(mock.port());
  const Reply reply = client.ask(request("POST", "/v1/chat/completions", chat("hi"), "Connection: close\r\n"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.head.get("connection"), "close");
  EXPECT_TRUE(client.closed_by_peer(5s));
}

TEST(MockServer, ALongInstantStreamIsWholeForASlowReader) {
  Mock mock(instant);
  RawClient client(mock.port());
  client.send(post_chat("hi", R"(,"max_tokens":100000,"stream":true)"));  // about 20 MB
  ASSERT_TRUE(eventually(5s, [&] { return mock.state()["open"] == 1; }));
  const Reply reply = client.read_reply(60s);
  EXPECT_TRUE(reply.complete);
  std::size_t events = 0;
  for (std::size_t at = reply.body.find("\"delta\":{\"content\""); at != std::string::npos;
       at = reply.body.find("\"delta\":{\"content\"", at + 1)) {
    ++events;
  }
  EXPECT_EQ(events, 100'000u);
}

TEST(MockServer, ATakenPortIsAnError) {
  Mock mock(instant);
  MockOptions options;
  options.port = mock.port();
  EXPECT_EQ(serve(options), 1);
}

TEST(MockServer, OptionsThatMakeNoSenseAreErrors) {
  MockOptions unknown_profile, no_replicas, no_room, no_slots, no_time;
  unknown_profile.profiles = {"demos"};
  no_replicas.replicas = 0;
  no_room.port = 65535;
  no_room.replicas = 2;
  no_slots.slots = 0;
  no_time.time_scale = 0;
  for (const MockOptions& options : {unknown_profile, no_replicas, no_room, no_slots, no_time})
    EXPECT_EQ(serve(options), 2);
}

// A prompt of 40 words, twice: the second time the first two blocks of 16 are in the cache.
TEST(MockServer, ShowsItsEngineUnderTheNamesOfVllm) {
  engine::Profile slow = quick();
  slow.step_fixed = 50ms;  // tokens that are due at once are written, and counted, as one
  Mock mock(slow);
  std::string words = "w0";
  for (int n = 1; n < 40; ++n) words += " w" + std::to_string(n);
  for (int n = 0; n < 2; ++n) support::ask_once(mock.port(), post_chat(words, R"(,"max_tokens":3)"));
  const Reply reply = support::ask_once(mock.port(), request("GET", "/metrics"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.head.get("content-type"), "text/plain; version=0.0.4");
  const auto samples = support::parse_metrics(reply.body);
  const auto value = [&](const char* name) { return support::sum_of(samples, name, {{"model_name", "mock"}}); };
  EXPECT_EQ(value("vllm:num_requests_running"), 0);
  EXPECT_EQ(value("vllm:num_requests_waiting"), 0);
  EXPECT_EQ(value("vllm:kv_cache_usage_perc"), 0);
  EXPECT_EQ(value("vllm:prompt_tokens_total"), 80);
  EXPECT_EQ(value("vllm:prefix_cache_queries_total"), 80);
  EXPECT_EQ(value("vllm:prefix_cache_hits_total"), 32);
  EXPECT_EQ(value("vllm:num_preemptions_total"), 0);
  EXPECT_EQ(value("vllm:generation_tokens_total"), 6);
  EXPECT_EQ(support::sum_of(samples, "headgate_mock_itl_error_seconds_count"), 0) << "no stream yet";
  support::ask_once(mock.port(), post_chat(words, R"(,"max_tokens":5,"stream":true)"));
  const Reply later = support::ask_once(mock.port(), request("GET", "/metrics"));
  const auto after = support::parse_metrics(later.body);
  EXPECT_EQ(support::sum_of(after, "headgate_mock_itl_error_seconds_count"), 4);
  EXPECT_EQ(support::sum_of(after, "headgate_mock_itl_error_seconds_bucket", {{"le", "+Inf"}}), 4);
}

// What the answer said is part of the next turn's prompt, and in the cache.
TEST(MockServer, AConversationThatGoesOnFindsItsAnswerInTheCache) {
  Mock mock(quick());
  const Reply first = support::ask_once(mock.port(), post_chat("begin here", R"(,"max_tokens":30)"));
  const std::string said = Json::parse(first.body)["choices"][0]["message"]["content"];
  const Json turn = {{"model", "m"},
                     {"max_tokens", 1},
                     {"messages",
                      {{{"role", "user"}, {"content", "begin here"}},
                       {{"role", "assistant"}, {"content", said}},
                       {{"role", "user"}, {"content", "and go on"}}}}};
  support::ask_once(mock.port(), request("POST", "/v1/chat/completions", turn.dump()));
  const auto samples = support::parse_metrics(support::ask_once(mock.port(), request("GET", "/metrics")).body);
  EXPECT_EQ(support::sum_of(samples, "vllm:prefix_cache_hits_total"), 16) << "one full block of the 2 + 29 computed";
}

}  // namespace
}  // namespace headgate::mock
