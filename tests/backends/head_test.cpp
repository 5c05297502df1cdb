#include "backends/wire/head.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/printable.hpp"

namespace headgate::wire {
namespace {

using namespace std::string_literals;

struct HeadCase {
  std::string bytes;
  HeadError error;
};

std::string post(const std::string& fields) { return "POST /v1/x HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n"; }

std::vector<HeadCase> request_cases() {
  using enum HeadError;
  return {
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", none},
      {"GET / HTTP/1.1\r\nhOST:a\r\n\r\n", none},
      {"GET / HTTP/1.1\r\nHost:\r\n\r\n", none},
      {"GET / HTTP/1.0\r\n\r\n", none},
      {"GET / HTTP/1.7\r\nHost: a\r\n\r\n", none},
      {"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", none},
      {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", none},
      {"GET http://a/v1?x=1 HTTP/1.1\r\nHost: a\r\n\r\n", none},
      {"M-SEARCH /%20 HTTP/1.1\r\nHost: a\r\n\r\n", none},
      {post("Content-Length: 0\r\n"), none},
      {post("Content-Length:\t17 \t\r\n"), none},
      {post("Content-Length: 9223372036854775807\r\n"), none},
      {post("Transfer-Encoding: chunked\r\n"), none},
      {post("transfer-encoding: CHUNKED\r\n"), none},
      {post("X: \x80\xff\ta\r\n"), none},
      {post("!#$%&'*+-.^_`|~09azAZ: token\r\n"), none},
      // start line
      {"GET /\r\nHost: a\r\n\r\n", start_line},
      {"GET\r\n\r\n", start_line},
      {"GET / \r\n\r\n", start_line},
      {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", start_line},
      {"GET /  HTTP/1.1\r\nHost: a\r\n\r\n", start_line},
      {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", start_line},
      {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", start_line},
      {"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", start_line},
      {"GET / a HTTP/1.1\r\nHost: a\r\n\r\n", start_line},
      {"GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n", start_line},
      {"GET a HTTP/1.1\r\nHost: a\r\n\r\n", start_line},
      {"GET *a HTTP/1.1\r\nHost: a\r\n\r\n", start_line},
      {"GET http:// HTTP/1.1\r\nHost: a\r\n\r\n", start_line},
      {"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", start_line},
      {"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", start_line},
      {"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", start_line},
      {"GET / http/1.1\r\nHost: a\r\n\r\n", start_line},
      {"GET / HTTP/1\r\nHost: a\r\n\r\n", start_line},
      {"GET / HTTP/11\r\nHost: a\r\n\r\n", start_line},
      {"GET / HTTP/1.10\r\nHost: a\r\n\r\n", start_line},
      {"GET / HTTP/1,1\r\nHost: a\r\n\r\n", start_line},
      {"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", start_line},
      {"\x16\x03\x01", start_line},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", version},
      {"GET / HTTP/0.9\r\nHost: a\r\n\r\n", version},
      {"PRI * HTTP/2.0\r\n\r\n", version},
      // names and values
      {post(": x\r\n"), field_name},
      {post("X : x\r\n"), field_name},
      {post("X\t: x\r\n"), field_name},
      {post("X\r\n"), field_name},
      {post("X(: x\r\n"), field_name},
      {post("X y: x\r\n"), field_name},
      {post("\x80: x\r\n"), field_name},
      {post("X: \x01\r\n"), field_value},
      {post("X: \x7f\r\n"), field_value},
      {post("X: \x1b[0m\r\n"), field_value},
      {post("X: a\0b\r\n"s), line_end},
      {post("X\0: a\r\n"s), line_end},
      {post("X: a\n"), line_end},
      {post("X: a\rY: b\r\n"), line_end},
      {"GET / HTTP/1.1\nHost: a\n\n", line_end},
      {"GET / HTTP/1.1\r\nHost: a\r\n\n", line_end},
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\r", line_end},
      {"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", line_end},
      {"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", line_end},
      {post("X: a\r\n b\r\n"), obs_fold},
      {post("X: a\r\n\tb\r\n"), obs_fold},
      {post("X: a\r\n \r\n"), obs_fold},
      {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", obs_fold},
      // the message as a whole
      {"GET / HTTP/1.1\r\n\r\n", host},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", host},
      {"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", host},
      {post("Content-Length: 5\r\nContent-Length: 5\r\n"), content_length},
      {post("Content-Length: 5\r\nContent-Length: 6\r\n"), content_length},
      {post("Content-Length: 5, 5\r\n"), content_length},
      {post("Content-Length: 5 5\r\n"), content_length},
      {post("Content-Length: +5\r\n"), content_length},
      {post("Content-Length: -5\r\n"), content_length},
      {post("Content-Length: 0x5\r\n"), content_length},
      {post("Content-Length: 5.0\r\n"), content_length},
      {post("Content-Length: 1e3\r\n"), content_length},
      {post("Content-Length: \r\n"), content_length},
      {post("Content-Length: 9223372036854775808\r\n"), content_length},
      {post("Content-Length: 18446744073709551621\r\n"), content_length},
      {post("Content-Length: 99999999999999999999999\r\n"), content_length},
      {post("Transfer-Encoding: gzip\r\n"), transfer_encoding},
      {post("Transfer-Encoding: gzip, chunked\r\n"), transfer_encoding},
      {post("Transfer-Encoding: chunked, chunked\r\n"), transfer_encoding},
      {post("Transfer-Encoding: xchunked\r\n"), transfer_encoding},
      {post("Transfer-Encoding: chunked;q=1\r\n"), transfer_encoding},
      {post("Transfer-Encoding: \"chunked\"\r\n"), transfer_encoding},
      {post("Transfer-Encoding: identity\r\n"), transfer_encoding},
      {post("Transfer-Encoding:\r\n"), transfer_encoding},
      {post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), transfer_encoding},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", transfer_encoding},
      {post("Transfer-Encoding: gzip\r\nContent-Length: 5\r\n"), transfer_encoding},
      {post("Content-Length: 5\r\nTransfer-Encoding: gzip\r\n"), transfer_encoding},
      {post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), length_and_encoding},
      {post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), length_and_encoding},
  };
}

struct Verdict {
  Read read = Read::incomplete;
  HeadError error = HeadError::none;
  std::size_t fed = 0;  // bytes shown when the verdict fell
};

Verdict feed(const std::string& bytes, std::size_t step) {
  HeadReader reader;
  RequestHead head;
  for (std::size_t size = std::min(step, bytes.size());; size = std::min(size + step, bytes.size())) {
    const Read read = reader.request(std::string_view(bytes).substr(0, size), head);
    if (read != Read::incomplete || size == bytes.size()) return {read, reader.error(), size};
  }
}

TEST(RequestHead, FollowsTheStrictRules) {
  for (const HeadCase& c : request_cases()) {
    const Verdict verdict = feed(c.bytes, c.bytes.size());
    EXPECT_EQ(verdict.read, c.error == HeadError::none ? Read::complete : Read::bad) << printable(c.bytes);
    EXPECT_EQ(verdict.error, c.error) << printable(c.bytes) << ": " << describe(verdict.error);
  }
}

TEST(RequestHead, IsJudgedAlikeByteByByte) {
  for (const HeadCase& c : request_cases()) {
    for (const std::size_t step : {1, 2, 3, 7, 16}) {
      const Verdict verdict = feed(c.bytes, step);
      EXPECT_EQ(verdict.read, c.error == HeadError::none ? Read::complete : Read::bad) << printable(c.bytes);
      EXPECT_EQ(verdict.error, c.error) << step << ": " << printable(c.bytes);
    }
  }
}

TEST(RequestHead, IsJudgedAlikeInAnyTwoPieces) {
  for (const HeadCase& c : request_cases()) {
    for (std::size_t cut = 0; cut <= c.bytes.size(); ++cut) {
      HeadReader reader;
      RequestHead head;
      Read read = reader.request(std::string_view(c.bytes).substr(0, cut), head);
      if (read == Read::incomplete) read = reader.request(c.bytes, head);
      EXPECT_EQ(read, c.error == HeadError::none ? Read::complete : Read::bad) << cut << ": " << printable(c.bytes);
      EXPECT_EQ(reader.error(), c.error) << cut << ": " << printable(c.bytes);
    }
  }
}

TEST(RequestHead, IsIncompleteUntilItsLastByte) {
  const std::string whole = post("Content-Length: 5\r\n");
  const Verdict verdict = feed(whole + "hello", 1);
  EXPECT_EQ(verdict.read, Read::complete);
  EXPECT_EQ(verdict.fed, whole.size());
}

TEST(RequestHead, WithBareLineFeedsIsRefusedAtTheFirstOne) {
  const Verdict verdict = feed("GET / HTTP/1.1\nHost: a\n\n", 1);
  EXPECT_EQ(verdict.read, Read::bad);
  EXPECT_EQ(verdict.fed, std::string("GET / HTTP/1.1\n").size());
}

TEST(RequestHead, GivesViewsOfItsParts) {
  const std::string bytes =
      "\r\nPOST /v1/chat/completions?a=b HTTP/1.1\r\nHost:  example.com:80 \r\nX-Empty:\r\nContent-Length: "
      "12\r\n\r\nbody";
  HeadReader reader;
  RequestHead head;
  ASSERT_EQ(reader.request(bytes, head), Read::complete);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/v1/chat/completions?a=b");
  EXPECT_EQ(head.minor, 1);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_EQ(head.framing, Framing::length);
  EXPECT_EQ(head.content_length, 12u);
  EXPECT_EQ(head.bytes, bytes.size() - 4);
  ASSERT_EQ(head.fields.size(), 3u);
  EXPECT_EQ(head.fields[0].name, "Host");
  EXPECT_EQ(head.fields[0].value, "example.com:80");
  EXPECT_EQ(head.fields[0].line, "Host:  example.com:80 \r\n");
  EXPECT_EQ(head.fields[1].value, "");
  EXPECT_EQ(head.fields[1].line, "X-Empty:\r\n");
  EXPECT_EQ(head.fields[2].id, Name::content_length);
}

TEST(RequestHead, ReadsOneMessageAfterAnother) {
  const std::string first = post("Content-Length: 0\r\n"), second = "GET /b HTTP/1.0\r\n\r\n";
  const std::string bytes = first + second;
  HeadReader reader;
  RequestHead head;
  ASSERT_EQ(reader.request(bytes, head), Read::complete);
  reader.reset();
  ASSERT_EQ(reader.request(std::string_view(bytes).substr(head.bytes), head), Read::complete);
  EXPECT_EQ(head.target, "/b");
  EXPECT_EQ(head.bytes, second.size());
  EXPECT_TRUE(head.fields.empty());
}

TEST(RequestHead, HoldsAtMost128Fields) {
  std::string fields;
  for (std::size_t i = 1; i < fields_max; ++i) fields += "X: y\r\n";
  EXPECT_EQ(feed(post(fields), 4096).error, HeadError::none);
  EXPECT_EQ(feed(post(fields + "X: y\r\n"), 4096).error, HeadError::too_many_fields);
}

TEST(RequestHead, KeepsAliveByVersionAndConnection) {
  const struct {
    const char *version, *fields;
    bool keep_alive;
  } cases[] = {
      {"1.1", "", true},
      {"1.1", "Connection: close\r\n", false},
      {"1.1", "Connection: Upgrade, CLOSE\r\n", false},
      {"1.1", "Connection: x\r\nConnection: close\r\n", false},
      {"1.1", "Connection: closed\r\n", true},
      {"1.0", "", false},
      {"1.0", "Connection: Keep-Alive\r\n", true},
      {"1.0", "Connection: keep-alive, close\r\n", false},
  };
  for (const auto& c : cases) {
    const std::string bytes = "GET / HTTP/"s + c.version + "\r\nHost: a\r\n" + c.fields + "\r\n";
    HeadReader reader;
    RequestHead head;
    ASSERT_EQ(reader.request(bytes, head), Read::complete) << bytes;
    EXPECT_EQ(head.keep_alive, c.keep_alive) << bytes;
  }
}

TEST(RequestHead, ExpectsContinueOnlyInHttp11) {
  HeadReader reader;
  RequestHead head;
  const std::string new_one = post("Expect: 100-Continue\r\n");
  ASSERT_EQ(reader.request(new_one, head), Read::complete);
  EXPECT_TRUE(head.expect_continue);
  const std::string old_one = "GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n";
  ASSERT_EQ(reader.request(old_one, head), Read::complete);
  EXPECT_FALSE(head.expect_continue);
}

TEST(Fields, AreRecognisedInAnyCase) {
  const std::vector<std::pair<std::string, Name>> names = {
      {"accept-encoding", Name::accept_encoding},
      {"access-control-allow-origin", Name::access_control_any},
      {"api-key", Name::api_key},
      {"authorization", Name::authorization},
      {"cache-control", Name::cache_control},
      {"connection", Name::connection},
      {"content-encoding", Name::content_encoding},
      {"content-type", Name::content_type},
      {"cookie", Name::cookie},
      {"date", Name::date},
      {"expect", Name::expect},
      {"keep-alive", Name::keep_alive},
      {"origin", Name::origin},
      {"proxy-authorization", Name::proxy_any},
      {"proxy-connection", Name::proxy_any},
      {"retry-after", Name::retry_after},
      {"retry-after-ms", Name::retry_after_ms},
      {"server", Name::server},
      {"te", Name::te},
      {"trailer", Name::trailer},
      {"upgrade", Name::upgrade},
      {"vary", Name::vary},
      {"x-api-key", Name::x_api_key},
      {"x-headgate-deadline-ms", Name::x_headgate_any},
      {"x-ratelimit-limit-requests", Name::x_ratelimit_any},
      {"x-request-id", Name::x_request_id},
      {"x-should-retry", Name::x_should_retry},
      {"x-stainless-timeout", Name::x_stainless_any},
      {"accept", Name::other},
      {"proxy", Name::other},
      {"x-headgate", Name::other},
      {"hosts", Name::other},
      {"content_length", Name::other},
      {"contentxlength", Name::other},
      {"datf", Name::other},
      {"retry-after-mz", Name::other},
      {"x", Name::other},
  };
  for (const auto& [name, id] : names) {
    std::string upper = name;
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    for (const std::string& spelled : {name, upper}) {
      const std::string bytes = post(spelled + ": 1\r\n");
      HeadReader reader;
      RequestHead head;
      ASSERT_EQ(reader.request(bytes, head), Read::complete) << spelled;
      EXPECT_EQ(head.fields[1].id, id) << spelled;
    }
  }
}

TEST(ResponseHead, IsFramedByStatusAndFields) {
  const struct {
    std::string bytes;
    Framing framing;
    std::uint64_t length;
    bool keep_alive;
  } cases[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", Framing::length, 7, true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Framing::chunked, 0, true},
      {"HTTP/1.1 200 OK\r\n\r\n", Framing::until_close, 0, false},
      {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", Framing::until_close, 0, false},
      {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", Framing::length, 0, true},
      {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", Framing::length, 0, false},
      {"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", Framing::none, 7, true},
      {"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", Framing::none, 7, true},
      {"HTTP/1.1 100 Continue\r\n\r\n", Framing::none, 0, true},
      {"HTTP/1.1 599 \xe9t\xe9\r\nContent-Length: 1\r\n\r\n", Framing::length, 1, true},
      {"HTTP/1.1 503 \r\nContent-Length: 1\r\n\r\n", Framing::length, 1, true},
      {"HTTP/1.1 503\r\nContent-Length: 1\r\n\r\n", Framing::length, 1, true},
  };
  for (const auto& c : cases) {
    HeadReader reader;
    ResponseHead head;
    ASSERT_EQ(reader.response(c.bytes + "rest", head), Read::complete) << printable(c.bytes);
    EXPECT_EQ(head.framing, c.framing) << printable(c.bytes);
    EXPECT_EQ(head.content_length, c.length) << printable(c.bytes);
    EXPECT_EQ(head.keep_alive, c.keep_alive) << printable(c.bytes);
    EXPECT_EQ(head.bytes, c.bytes.size());
  }
}

TEST(ResponseHead, FollowsTheStrictRules) {
  using enum HeadError;
  const std::vector<HeadCase> cases = {
      {"HTTP/1.1 99 x\r\n\r\n", start_line},
      {"HTTP/1.1 099 x\r\n\r\n", start_line},
      {"HTTP/1.1 600 x\r\n\r\n", start_line},
      {"HTTP/1.1 2000 x\r\n\r\n", start_line},
      {"HTTP/1.1 20x x\r\n\r\n", start_line},
      {"HTTP/1.1  200 x\r\n\r\n", start_line},
      {"HTTP/1.1\r\n\r\n", start_line},
      {"\r\nHTTP/1.1 200 OK\r\n\r\n", start_line},
      {"ICY 200 OK xxx\r\n\r\n", start_line},
      {"HTTP/2.0 200 OK\r\n\r\n", version},
      {"HTTP/1.1 200 OK\n\n", line_end},
      {"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", obs_fold},
      {"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", field_name},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", content_length},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", length_and_encoding},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", transfer_encoding},
      {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", transfer_encoding},
  };
  for (const HeadCase& c : cases) {
    HeadReader reader;
    ResponseHead head;
    EXPECT_EQ(reader.response(c.bytes, head), Read::bad) << printable(c.bytes);
    EXPECT_EQ(reader.error(), c.error) << printable(c.bytes);
  }
}

TEST(ListsToken, FindsWholeTokensInAnyCase) {
  EXPECT_TRUE(lists_token("close", "close"));
  EXPECT_TRUE(lists_token(" a,\tCLOSE ,b", "close"));
  EXPECT_FALSE(lists_token("closed, enclose", "close"));
  EXPECT_FALSE(lists_token("", "close"));
  EXPECT_TRUE(lists_token(",,x", "X"));
}

}  // namespace
}  // namespace headgate::wire
