// Whole answers as bytes, fed in one piece and byte by byte: the outcome must be the same.
#include "loadtest/answer.hpp"

#include <gtest/gtest.h>

#include "support/answers.hpp"

namespace headgate::loadtest {
namespace {

using namespace std::chrono_literals;
using support::chunk;
using support::content_event;
using support::done_event;
using support::error_event;
using support::final_chunk;
using support::finish_event;
using support::role_event;
using support::stream_head;
using support::usage_event;

constexpr Time start{1s};
const Planned two_tokens{Nanos{0}, 5, 2, true};

struct Fed {
  AnswerReader reader;
  std::size_t used = 0;
};

Fed feed(const std::string& bytes, bool stream, std::size_t step, bool closed) {
  Fed fed;
  fed.reader.start(stream);
  for (std::size_t end = 0; end < bytes.size() && !fed.reader.done();) {
    end = std::min(end + step, bytes.size());
    fed.used += fed.reader.feed(std::string_view{bytes}.substr(fed.used, end - fed.used), start);
  }
  if (closed) fed.reader.end_of_input(start);
  return fed;
}

struct Case {
  std::string what, bytes, transport;
  Outcome outcome;
  std::string reason;
  bool stream = true;
};

std::string good_stream(int input = 5, int output = 2) {
  return stream_head("x-headgate-backend: small/b1\r\nx-headgate-attempts: 2\r\n") + chunk(role_event()) +
         chunk(content_event("one ")) + chunk(content_event("two")) + chunk(finish_event()) +
         chunk(usage_event(input, output)) + chunk(done_event()) + final_chunk();
}

std::vector<Case> cases() {
  const std::string begun = stream_head() + chunk(role_event()) + chunk(content_event("one "));
  const std::string body = support::good_body("m", {0ms, 5, 2, {"one ", "two"}});
  const auto refusal =
      support::plain_reply(503, R"({"error":{"message":"full","type":"overloaded_error","code":"queue_full"}})",
                           "x-headgate-refusal: queue_full\r\n");
  return {
      {"whole", good_stream(), "", Outcome::ok, ""},
      {"usage says more", good_stream(5, 3), "", Outcome::wrong_count, "asked 5/2, counted 2, reported 5/3"},
      {"prompt counted otherwise", good_stream(6, 2), "", Outcome::wrong_count, "asked 5/2, counted 2, reported 6/2"},
      {"a token too few",
       begun + chunk(finish_event()) + chunk(usage_event(5, 1)) + chunk(done_event()) + final_chunk(), "",
       Outcome::wrong_count, "asked 5/2, counted 1, reported 5/1"},
      {"no usage", begun + chunk(content_event("two")) + chunk(finish_event()) + chunk(done_event()) + final_chunk(),
       "", Outcome::wrong_count, "asked 5/2, counted 2, reported nothing"},
      {"refused", refusal, "", Outcome::refused, "queue_full"},
      {"502 of the gateway",
       support::plain_reply(502, R"({"error":{"message":"x","type":"upstream_error","code":"upstream_failed"}})"), "",
       Outcome::failed_before_first_token, "502 upstream_failed"},
      {"500 without JSON", support::plain_reply(500, "oops", "", "text/plain"), "", Outcome::failed_before_first_token,
       "500"},
      {"no connection", "", "connect", Outcome::failed_before_first_token, "connect"},
      {"reset before content", stream_head() + chunk(role_event()), "reset", Outcome::failed_before_first_token,
       "reset"},
      {"error before content", stream_head() + chunk(error_event("upstream_failed")) + final_chunk(), "",
       Outcome::failed_before_first_token, "error event"},
      {"empty stream", stream_head() + final_chunk(), "", Outcome::failed_before_first_token, "ended without content"},
      {"cut", begun + chunk(error_event("upstream_failed")) + final_chunk(), "", Outcome::cut, "error event"},
      {"cut, then closed", begun + chunk(error_event("upstream_failed")), "closed", Outcome::cut, "error event"},
      {"cut without an event", begun, "closed", Outcome::cut_dirty, "closed"},
      {"clean end without done", begun + final_chunk(), "", Outcome::cut_dirty, "ended without content"},
      {"two error events", begun + chunk(error_event("a")) + chunk(error_event("b")) + final_chunk(), "",
       Outcome::cut_dirty, "error event"},
      {"done after the error", begun + chunk(error_event("a")) + chunk(done_event()) + final_chunk(), "",
       Outcome::cut_dirty, "error event"},
      {"content after the error", begun + chunk(error_event("a")) + chunk(content_event("x")) + final_chunk(), "",
       Outcome::cut_dirty, "error event"},
      {"done without finish",
       begun + chunk(content_event("two")) + chunk(usage_event(5, 2)) + chunk(done_event()) + final_chunk(), "",
       Outcome::cut_dirty, "ended without content"},
      {"half an event glued to the error", begun + chunk("data: {\"choi") + chunk(error_event("a")) + final_chunk(), "",
       Outcome::cut_dirty, "malformed"},
      {"broken chunk", stream_head() + chunk(role_event()) + "zz\r\n", "", Outcome::failed_before_first_token,
       "malformed"},
      {"JSON where events were asked for", support::plain_reply(200, body), "", Outcome::failed_before_first_token,
       "malformed"},
      {"unary", support::plain_reply(200, body), "", Outcome::ok, "", false},
      {"unary after 100", "HTTP/1.1 100 Continue\r\n\r\n" + support::plain_reply(200, body), "", Outcome::ok, "",
       false},
      {"unary short", support::plain_reply(200, support::good_body("m", {0ms, 5, 1, {"one "}})), "",
       Outcome::wrong_count, "asked 5/2, counted 1, reported 5/1", false},
      {"unary broken", support::plain_reply(200, "{\"a\":"), "", Outcome::failed_before_first_token, "malformed",
       false},
      {"unary half", support::plain_reply(200, body).substr(0, 120), "reset", Outcome::failed_before_first_token,
       "reset", false},
  };
}

TEST(Answer, IsJudgedByWhatArrived) {
  for (const Case& one : cases()) {
    for (const std::size_t step : {std::size_t{1} << 20, std::size_t{1}, std::size_t{7}}) {
      const Fed fed = feed(one.bytes, one.stream, step, !one.transport.empty());
      Planned planned = two_tokens;
      planned.stream = one.stream;
      const Verdict verdict = judge(fed.reader.facts(), planned, one.transport, true);
      EXPECT_EQ(name_of(verdict.outcome), name_of(one.outcome)) << one.what << " in steps of " << step;
      EXPECT_EQ(verdict.reason, one.reason) << one.what << " in steps of " << step;
    }
  }
}

TEST(Answer, ToldNotToCountIsOkWithAnyNumberOfTokens) {
  EXPECT_EQ(judge(feed(good_stream(9, 9), true, 999, false).reader.facts(), two_tokens, "", false).outcome,
            Outcome::ok);
}

TEST(Answer, NamesBackendAndAttempts) {
  const Fed fed = feed(good_stream(), true, 5, false);
  EXPECT_EQ(fed.reader.facts().backend, "small/b1");
  EXPECT_EQ(fed.reader.facts().attempts, 2u);
  EXPECT_TRUE(fed.reader.keep_alive());
  EXPECT_EQ(fed.used, good_stream().size());
}

TEST(Answer, LeavesWhatFollowsItAlone) {
  const std::string first = good_stream();
  const Fed fed = feed(first + "HTTP/1.1 ", true, 1 << 20, false);
  EXPECT_TRUE(fed.reader.done());
  EXPECT_EQ(fed.used, first.size());
}

TEST(Answer, EndsAtTheEndOfTheConnectionWhenItHasNoLength) {
  const std::string body = support::good_body("m", {0ms, 5, 2, {"one ", "two"}});
  const Fed fed = feed("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + body, false, 999, true);
  EXPECT_TRUE(fed.reader.facts().complete);
  EXPECT_FALSE(fed.reader.keep_alive());
  Planned planned = two_tokens;
  planned.stream = false;
  EXPECT_EQ(judge(fed.reader.facts(), planned, "", true).outcome, Outcome::ok);
}

TEST(Answer, TimesFirstAndLastContentAndTheLargestGap) {
  AnswerReader reader;
  Histogram itl;
  reader.gaps_into(&itl);
  reader.start(true);
  const auto at = [&](const std::string& bytes, Nanos when) { reader.feed(bytes, start + when); };
  at(stream_head() + chunk(role_event()), 10ms);
  at(chunk(content_event("a ")), 30ms);
  at(chunk(content_event("b ")), 50ms);
  at(chunk(content_event("c ")), 120ms);
  at(chunk(content_event("d")), 130ms);
  at(chunk(finish_event()) + chunk(done_event()) + final_chunk(), 150ms);
  EXPECT_EQ(reader.facts().first_content, start + 30ms);
  EXPECT_EQ(reader.facts().last_content, start + 130ms);
  EXPECT_EQ(reader.facts().gap_max, Nanos{70ms});
  EXPECT_EQ(itl.count(), 3u);
  EXPECT_EQ(itl.max_us(), 70'000);
  EXPECT_EQ(reader.facts().content_events, 4u);
}

}  // namespace
}  // namespace headgate::loadtest
