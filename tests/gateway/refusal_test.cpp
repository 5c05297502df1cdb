#include "gateway/refusal.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "support/http_text.hpp"

namespace headgate::gateway {
namespace {

using namespace std::chrono_literals;
using policies::Code;

std::string whole(const RefusalAnswer& answer) {
  std::string text;
  append_refusal_head(text, answer);
  append_refusal_body(text, answer);
  return text;
}

support::Reply read(const RefusalAnswer& answer) {
  const std::string text = whole(answer);
  support::ReplyReader reader;
  EXPECT_EQ(reader.take(text, {}), text.size());
  EXPECT_TRUE(reader.reply().complete);
  return reader.reply();
}

// One line of HTTP.md "Answers that Headgate makes itself" each, and those of the wire rules.
struct Line {
  Refusal refusal;
  int status;
  const char* type;
  const char* code;
  const char* should_retry;  // of an answer with repeat_ok; "": not sent
  bool names_refusal;        // x-headgate-refusal
};

const Line contract[] = {
    {Refusal::invalid_api_key, 401, "invalid_request_error", "invalid_api_key", "false", true},
    {Refusal::model_not_allowed, 403, "invalid_request_error", "model_not_allowed", "false", true},
    {Refusal::model_not_found, 404, "invalid_request_error", "model_not_found", "false", true},
    {Refusal::invalid_body, 400, "invalid_request_error", "invalid_body", "false", true},
    {Refusal::invalid_header, 400, "invalid_request_error", "invalid_header", "false", true},
    {Refusal::context_length_exceeded, 400, "invalid_request_error", "context_length_exceeded", "false", true},
    {Refusal::unsupported_encoding, 415, "invalid_request_error", "unsupported_encoding", "false", true},
    {Refusal::body_too_large, 413, "invalid_request_error", "body_too_large", "false", true},
    {Refusal::headers_too_large, 431, "invalid_request_error", "headers_too_large", "false", true},
    {Refusal::method_not_allowed, 405, "invalid_request_error", "method_not_allowed", "false", true},
    {Refusal::not_found, 404, "invalid_request_error", "not_found", "false", true},
    {Refusal::memory, 503, "overloaded_error", "memory", "true", true},
    {Refusal::bodies_per_key, 429, "rate_limit_error", "bodies_per_key", "true", true},
    {Refusal::queue_full, 503, "overloaded_error", "queue_full", "true", true},
    {Refusal::upstream_socket, 503, "overloaded_error", "upstream_socket", "true", true},
    {Refusal::deadline_unmeetable, 503, "overloaded_error", "deadline_unmeetable", "true", true},
    {Refusal::deadline_exceeded, 504, "timeout_error", "deadline_exceeded", "false", true},
    {Refusal::no_healthy_backend, 503, "overloaded_error", "no_healthy_backend", "true", true},
    {Refusal::requests_per_minute, 429, "rate_limit_error", "requests_per_minute", "true", true},
    {Refusal::tokens_per_minute, 429, "rate_limit_error", "tokens_per_minute", "true", true},
    {Refusal::concurrency, 429, "rate_limit_error", "concurrency", "true", true},
    {Refusal::request_too_large, 429, "rate_limit_error", "request_too_large_for_limit", "false", true},
    {Refusal::cost_unmeetable, 402, "budget_error", "cost_budget_unmeetable", "false", true},
    {Refusal::quality_unmeetable, 402, "budget_error", "cost_budget_unmeetable", "false", true},
    {Refusal::upstream_failed, 502, "upstream_error", "upstream_failed", "false", false},
    {Refusal::upstream_in_band, 502, "upstream_error", "upstream_failed", "", false},
    {Refusal::upstream_overloaded, 503, "upstream_error", "upstream_failed", "", false},
    {Refusal::upstream_timeout, 504, "upstream_error", "upstream_timeout", "false", false},
    {Refusal::upstream_auth, 502, "upstream_error", "upstream_auth", "false", false},
    {Refusal::upstream_status, 502, "upstream_error", "upstream_status", "", false},
    {Refusal::stream_cut, 502, "upstream_error", "stream_cut", "", false},
    {Refusal::tls_required, 400, "invalid_request_error", "tls_required", "false", true},
    {Refusal::bad_request, 400, "invalid_request_error", "bad_request", "false", true},
    {Refusal::version_not_supported, 505, "invalid_request_error", "version_not_supported", "false", true},
    {Refusal::head_timeout, 408, "timeout_error", "head_timeout", "false", true},
    {Refusal::body_timeout, 408, "timeout_error", "body_timeout", "false", true},
    {Refusal::shutting_down, 503, "overloaded_error", "shutting_down", "true", true},
    {Refusal::internal, 500, "server_error", "internal", "", false},
};

TEST(Refusal, AnswersAsTheContractSaysLineByLine) {
  std::set<Refusal> seen;
  for (const Line& line : contract) {
    SCOPED_TRACE(line.code);
    seen.insert(line.refusal);
    RefusalAnswer answer;
    answer.refusal = line.refusal;
    answer.repeat_ok = true;
    answer.request_id = "id-7";
    const support::Reply reply = read(answer);
    EXPECT_EQ(reply.status, line.status);
    EXPECT_EQ(reply.head.get("Content-Type"), "application/json");
    EXPECT_EQ(reply.head.get("x-request-id"), "id-7");
    EXPECT_EQ(reply.head.get("x-should-retry"), line.should_retry);
    EXPECT_EQ(reply.head.get("x-headgate-refusal"), line.names_refusal ? line.code : "");
    EXPECT_FALSE(reply.head.has("Retry-After"));
    EXPECT_FALSE(reply.head.has("Connection"));
    const auto json = nlohmann::json::parse(reply.body);
    ASSERT_EQ(json.size(), 1u);
    const auto& error = json["error"];
    EXPECT_EQ(error.size(), 4u);
    EXPECT_EQ(error["type"], line.type);
    EXPECT_EQ(error["code"], line.code);
    EXPECT_TRUE(error["param"].is_null());
    EXPECT_FALSE(error["message"].get<std::string>().empty());
  }
  EXPECT_EQ(seen.size(), refusals);
}

TEST(Refusal, IsWrittenAsACompleteAnswer) {
  RefusalAnswer answer;
  answer.refusal = Refusal::queue_full;
  answer.value = 1000;
  answer.limit = 1000;
  answer.retry_after = 2500ms;
  answer.repeat_ok = true;
  answer.request_id = "r1";
  answer.more_head = "x-extra: 1\r\n";
  EXPECT_EQ(whole(answer),
            "HTTP/1.1 503 Service Unavailable\r\n"
            "Content-Type: application/json\r\n"
            "x-request-id: r1\r\n"
            "x-headgate-refusal: queue_full\r\n"
            "Retry-After: 3\r\n"
            "retry-after-ms: 2500\r\n"
            "x-should-retry: true\r\n"
            "x-extra: 1\r\n"
            "Content-Length: 140\r\n"
            "\r\n"
            "{\"error\":{\"message\":\"The queue of this model is full: 1000 waiting, limit 1000\","
            "\"type\":\"overloaded_error\",\"param\":null,\"code\":\"queue_full\"}}");
}

TEST(Refusal, RoundsAdviceUpToWholeSecondsFromOne) {
  const struct {
    Nanos advice;
    const char *seconds, *ms, *should_retry;
  } table[] = {
      {1ns, "1", "1", "true"},
      {300ms, "1", "300", "true"},
      {1s, "1", "1000", "true"},
      {1001ms, "2", "1001", "true"},
      {60s, "60", "60000", "true"},
      {60'001ms, "61", "60001", "false"},
      {3600s, "3600", "3600000", "false"},
  };
  for (const auto& row : table) {
    RefusalAnswer answer;
    answer.refusal = Refusal::no_healthy_backend;
    answer.retry_after = row.advice;
    answer.repeat_ok = true;
    const support::Reply reply = read(answer);
    EXPECT_EQ(reply.head.get("Retry-After"), row.seconds);
    EXPECT_EQ(reply.head.get("retry-after-ms"), row.ms);
    EXPECT_EQ(reply.head.get("x-should-retry"), row.should_retry) << row.seconds;
  }
}

TEST(Refusal, TellsARepeatNotToComeBack) {
  RefusalAnswer answer;
  answer.refusal = Refusal::queue_full;
  answer.repeat_ok = false;
  EXPECT_EQ(read(answer).head.get("x-should-retry"), "false");
}

TEST(Refusal, NamesTheNumberExceededItsValueAndItsLimit) {
  const struct {
    Refusal refusal;
    const char* message;
  } table[] = {
      {Refusal::body_too_large, "The request body is at least 70 bytes, over the limit of 50"},
      {Refusal::headers_too_large, "The request head is at least 70 bytes, over the limit of 50"},
      {Refusal::context_length_exceeded, "The prompt is at least 70 tokens, over the model's context window of 50"},
      {Refusal::memory, "The request body of 70 bytes is over the 50 bytes of body memory that are free"},
      {Refusal::queue_full, "The queue of this model is full: 70 waiting, limit 50"},
      {Refusal::deadline_unmeetable, "The predicted wait of 70 ms is over the 50 ms that are left"},
      {Refusal::deadline_exceeded, "The request waited 70 ms for a backend, over its limit of 50 ms"},
      {Refusal::body_timeout, "The request body came too slowly: silent for 70 ms, the limit is 50 ms"},
      {Refusal::head_timeout, "The request head was not complete after 70 ms, the limit is 50 ms"},
  };
  for (const auto& row : table) {
    RefusalAnswer answer;
    answer.refusal = row.refusal;
    answer.detail = "silent";
    answer.value = 70;
    answer.limit = 50;
    EXPECT_EQ(nlohmann::json::parse(read(answer).body)["error"]["message"], row.message);
  }
}

TEST(Refusal, EscapesWhatTheCallerSent) {
  RefusalAnswer answer;
  answer.refusal = Refusal::model_not_found;
  answer.detail = "a\"\n%v\xff";
  answer.param = "mod\"el";
  const auto error = nlohmann::json::parse(read(answer).body)["error"];
  EXPECT_EQ(error["message"], "There is no model \"a\"\n%v\xEF\xBF\xBD\"");
  EXPECT_EQ(error["param"], "mod\"el");
}

TEST(Refusal, ListsTheMethodsAllowed) {
  RefusalAnswer answer;
  answer.refusal = Refusal::method_not_allowed;
  answer.detail = "PUT";
  answer.allow = "POST";
  EXPECT_EQ(read(answer).head.get("Allow"), "POST");
}

TEST(Refusal, LeavesTheBodyOutForHeadAndKeepsItsLength) {
  RefusalAnswer answer;
  answer.refusal = Refusal::not_found;
  const std::string with = whole(answer);
  answer.without_body = true;
  const std::string without = whole(answer);
  EXPECT_TRUE(with.starts_with(without));
  EXPECT_TRUE(without.ends_with("\r\n\r\n"));
}

TEST(Refusal, GivesABackendsOwnStatusWithAFixedMessage) {
  RefusalAnswer answer;
  answer.refusal = Refusal::upstream_status;
  answer.status = 529;
  answer.more_head = "Retry-After: 7\r\n";
  const support::Reply reply = read(answer);
  EXPECT_EQ(reply.status, 529);
  EXPECT_EQ(reply.head.get("Retry-After"), "7");
}

TEST(Refusal, FollowsTheDispatchersAnswer) {
  policies::Outcome in_band, overloaded, lost;
  in_band.end = overloaded.end = policies::End::in_band_error;
  overloaded.overloaded = true;
  lost.end = policies::End::sent_no_answer;
  const struct {
    Code code;
    policies::Outcome last;
    Refusal refusal;
  } table[] = {
      {Code::model_not_found, {}, Refusal::model_not_found},
      {Code::no_healthy_backend, {}, Refusal::no_healthy_backend},
      {Code::queue_full, {}, Refusal::queue_full},
      {Code::deadline_unmeetable, {}, Refusal::deadline_unmeetable},
      {Code::deadline_exceeded, {}, Refusal::deadline_exceeded},
      {Code::upstream_failed, lost, Refusal::upstream_failed},
      {Code::upstream_failed, in_band, Refusal::upstream_in_band},
      {Code::upstream_failed, overloaded, Refusal::upstream_overloaded},
      {Code::upstream_timeout, {}, Refusal::upstream_timeout},
      {Code::upstream_auth, {}, Refusal::upstream_auth},
      {Code::stream_cut, {}, Refusal::stream_cut},
      {Code::no_socket, {}, Refusal::upstream_socket},
  };
  for (const auto& row : table) {
    const policies::Answer answer{row.code, 3s, true, 11, 22};
    const RefusalAnswer out = refusal_for(answer, row.last);
    EXPECT_EQ(out.refusal, row.refusal) << row_of(row.refusal).code;
    EXPECT_EQ(out.retry_after, 3s);
    EXPECT_TRUE(out.repeat_ok);
    EXPECT_EQ(out.value, 11);
    EXPECT_EQ(out.limit, 22);
  }
  policies::Outcome status;
  status.end = policies::End::status;
  status.status = 500;
  const RefusalAnswer received = refusal_for({Code::as_received, {}, false, 0, 0}, status);
  EXPECT_EQ(received.refusal, Refusal::upstream_status);
  EXPECT_EQ(received.status, 500);
}

TEST(Refusal, ShowsAtMost200BytesOfWhatACallerSent) {
  const auto shown = [](const std::string& model) {
    const RefusalAnswer answer{.refusal = Refusal::model_not_found, .detail = model};
    std::string body;
    append_error_body(body, answer);
    const std::string message = nlohmann::json::parse(body)["error"]["message"];
    return message.substr(std::string_view("There is no model \"").size());
  };
  const auto times = [](std::size_t n, const std::string& text) {
    std::string all;
    for (std::size_t i = 0; i < n; ++i) all += text;
    return all;
  };
  EXPECT_EQ(shown(times(200, "a")), times(200, "a") + '"');
  EXPECT_EQ(shown(times(201, "a")), times(200, "a") + "...\"");
  EXPECT_EQ(shown("a" + times(200, "é")), "a" + times(99, "é") + "...\"");
  EXPECT_EQ(shown("ab" + times(200, "\U0001F600")), "ab" + times(49, "\U0001F600") + "...\"");
  EXPECT_EQ(shown(times(300, "\x80")), times(197, "\uFFFD") + "...\"") << "no character begins near the cut";
}

TEST(Refusal, EndsAStreamWithOneErrorEvent) {
  RefusalAnswer answer;
  answer.refusal = Refusal::stream_cut;
  answer.detail = "the backend went silent";
  std::string text = "data: {}\n\n";
  append_error_event(text, answer);
  EXPECT_EQ(text,
            "data: {}\n\n"
            "data: {\"error\":{\"message\":\"The stream ended before its end: the backend went silent\","
            "\"type\":\"upstream_error\",\"param\":null,\"code\":\"stream_cut\"}}\n\n");
}

TEST(Refusal, HasAReasonPhraseForEveryStatusOfTheTable) {
  for (std::size_t i = 0; i < refusals; ++i) {
    EXPECT_NE(reason_phrase(row_of(static_cast<Refusal>(i)).status), "") << i;
  }
}

}  // namespace
}  // namespace headgate::gateway
