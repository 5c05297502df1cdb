// Backends that break the rules of HTTP: each has a defined answer, and the next request does not notice.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

constexpr const char* json_head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";

struct Row {
  const char* what;
  std::string bytes;
  bool closes;            // the backend, behind them
  int status;             // of the caller's answer
  std::string body = {};  // of a 200
  bool reused = false;    // the connection, by the next request
};

class HostileBackend : public testing::Test {
 protected:
  static nlohmann::json config_for(const ScriptedUpstream& upstream) {
    auto config = basic_config({&upstream});
    for (const char* limit : {"first_byte", "idle", "total_unary"}) config["routes"]["m"]["timeouts"][limit] = "500ms";
    config["pools"]["p"]["probe"]["interval"] = "1h";
    config["workers"] = 1;  // idle connections are a worker's own
    return config;
  }
  // For what is long.
  bool take_your_time() {
    auto config = gateway_.config();
    for (const char* limit : {"first_byte", "idle", "total_unary"}) config["routes"]["m"]["timeouts"][limit] = "60s";
    gateway_.rewrite_config(config);
    return gateway_.admin_post("/admin/reload").status == 200;
  }
  Reply ask() const { return ask_once(gateway_.port(), chat_request(chat_body(false)), scaled(10s)); }

  void expect(const Row& row) {
    upstream_.set_script([&row](Exchange& x) {
      row.closes ? x.write(row.bytes) : x.write_last(row.bytes);
      if (row.closes) x.close();
    });
    const Reply reply = ask();
    EXPECT_EQ(reply.status, row.status) << row.what << "\n" << reply.raw;
    if (row.status == 200) {
      EXPECT_EQ(reply.body, row.body) << row.what;
      EXPECT_TRUE(reply.complete) << row.what;
    } else {
      EXPECT_EQ(plain_error_fault(reply), "") << row.what;
    }
    const std::size_t connections = upstream_.connection_count();
    upstream_.set_script(good_answer());
    const Reply next = ask();
    EXPECT_EQ(next.status, 200) << "after " << row.what << "\n" << next.raw;
    EXPECT_EQ(next.body, good_body("m")) << "after " << row.what;
    EXPECT_EQ(upstream_.connection_count(), connections + (row.reused ? 0 : 1)) << row.what;
  }

  ScriptedUpstream upstream_{good_answer()};
  GatewayProcess gateway_{config_for(upstream_)};
};

TEST_F(HostileBackend, WithABrokenHeadIsA502) {
  const std::string body = "\r\n{}";
  const Row table[] = {
      {"noise", "SSH-2.0-OpenSSH_9\r\n\r\n", false, 502},
      {"nothing at all", "", true, 502},
      {"half a head", "HTTP/1.1 200 OK\r\nContent-Le", true, 502},
      {"another version", "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n" + body, false, 502},
      {"no status", "HTTP/1.1  OK\r\nContent-Length: 2\r\n" + body, false, 502},
      {"a status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n" + body, false, 502},
      {"a status out of range", "HTTP/1.1 999 OK\r\nContent-Length: 2\r\n" + body, false, 502},
      {"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}", false, 502},
      {"a folded line", std::string(json_head) + "X-A: 1\r\n  folded\r\nContent-Length: 2\r\n" + body, false, 502},
      {"a space before the colon", std::string(json_head) + "Content-Length : 2\r\n" + body, false, 502},
      {"a NUL", std::string(json_head) + "X-A: " + std::string(1, '\0') + "\r\nContent-Length: 2\r\n" + body, false,
       502},
      {"an empty name", std::string(json_head) + ": 1\r\nContent-Length: 2\r\n" + body, false, 502},
      {"a length beside chunks", std::string(json_head) + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n" + body,
       false, 502},
      {"chunks beside a length", std::string(json_head) + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n" + body,
       false, 502},
      {"two lengths", std::string(json_head) + "Content-Length: 2\r\nContent-Length: 3\r\n" + body, false, 502},
      {"a signed length", std::string(json_head) + "Content-Length: +2\r\n" + body, false, 502},
      {"another coding", std::string(json_head) + "Transfer-Encoding: gzip, chunked\r\n" + body, false, 502},
      {"a switch of protocols", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", false, 502},
      {"a 204", "HTTP/1.1 204 No Content\r\n\r\n", false, 502},
      {"a redirect", "HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n", false, 502},
  };
  for (const Row& row : table) {
    expect(row);
    if (HasFailure()) break;
  }
}

TEST_F(HostileBackend, WithABrokenBodyIsNeverTakenForWhole) {
  const std::string chunked = std::string(json_head) + "Transfer-Encoding: chunked\r\n\r\n";
  const Row table[] = {
      {"less than its length", std::string(json_head) + "Content-Length: 20\r\n\r\n{\"a\":", true, 502},
      {"half a chunk", chunked + "20\r\n{\"a\":", true, 502},
      {"no last chunk", chunked + chunk("{\"a\":1}"), true, 502},
      {"a chunk size with a sign", chunked + "+7\r\n{\"a\":1}\r\n0\r\n\r\n", false, 502},
      {"a chunk size in hex notation", chunked + "0x7\r\n{\"a\":1}\r\n0\r\n\r\n", false, 502},
      {"a chunk size of 17 digits", chunked + "00000000000000007\r\n{\"a\":1}\r\n0\r\n\r\n", false, 502},
      {"a bare line feed behind a chunk size", chunked + "7\n{\"a\":1}\r\n0\r\n\r\n", false, 502},
      {"a chunk longer than it says", chunked + "6\r\n{\"a\":1}\r\n0\r\n\r\n", false, 502},
      {"half an answer, then silence", std::string(json_head) + "Content-Length: 20\r\n\r\n{\"a\":", false, 504},
      {"a head, then silence", std::string(json_head) + "Content-Length: 20\r\n\r\n", false, 504},
  };
  for (const Row& row : table) {
    expect(row);
    if (HasFailure()) break;
  }
}

TEST_F(HostileBackend, WhatIsOldOrOddButWholeGoesThrough) {
  const std::string text = "{\"a\":1}", chunked = std::string(json_head) + "Transfer-Encoding: chunked\r\n\r\n";
  const Row table[] = {
      {"a length", std::string(json_head) + "Content-Length: 7\r\n\r\n" + text, false, 200, text, true},
      {"chunks", chunked + chunk("{\"a\"") + chunk(":1}") + final_chunk(), false, 200, text, true},
      {"chunks with extensions", chunked + "7;name=\"v\"\r\n" + text + "\r\n0;last\r\n\r\n", false, 200, text, true},
      {"trailers", chunked + chunk(text) + "0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n", false, 200, text, true},
      {"an end by closing", std::string(json_head) + "\r\n" + text, true, 200, text},
      {"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + text, true, 200, text},
      {"HTTP/1.0 with a length, kept open",
       "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n" + text, false, 200, text},
      {"Connection: close, kept open", std::string(json_head) + "Connection: close\r\nContent-Length: 7\r\n\r\n" + text,
       false, 200, text},
      {"bytes behind the end", std::string(json_head) + "Content-Length: 7\r\n\r\n" + text + "HTTP/1.1 200 OK\r\n",
       false, 200, text},
      {"a second answer behind the end",
       std::string(json_head) + "Content-Length: 7\r\n\r\n" + text + json_head + "Content-Length: 7\r\n\r\n{\"b\":2}",
       false, 200, text},
      {"16 interim answers",
       [] {
         std::string all;
         for (int n = 0; n < 16; ++n) all += "HTTP/1.1 102 Processing\r\n\r\n";
         return all;
       }() +
           json_head + "Content-Length: 7\r\n\r\n" + text,
       false, 200, text, true},
      {"no reason phrase", "HTTP/1.1 200 \r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n" + text, false,
       200, text, true},
  };
  for (const Row& row : table) {
    expect(row);
    if (HasFailure()) break;
  }
}

TEST_F(HostileBackend, ThatNeverEndsItsHeadIsCutAtItsSize) {
  for (const std::string& endless : {std::string("HTTP/1.1 200 OK\r\nX: ") + std::string(70 << 10, 'x'),
                                     [] {
                                       std::string all = "HTTP/1.1 200 OK\r\n";
                                       for (int n = 0; n < 130; ++n) all += "X-A: 1\r\n";
                                       return all;
                                     }(),
                                     [] {
                                       std::string all;
                                       for (int n = 0; n < 17; ++n) all += "HTTP/1.1 102 Processing\r\n\r\n";
                                       return all + json_head + "Content-Length: 2\r\n\r\n{}";
                                     }()})
    expect({"an endless head", endless, false, 502});
}

// An error before the request's body has been read: it is the answer, and no byte more is sent than the backend took.
TEST_F(HostileBackend, ThatAnswersBeforeItHasReadIsHeard) {
  upstream_.set_interim(
      "HTTP/1.1 413 Payload Too Large\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: "
      "31\r\n\r\n"
      R"({"error":{"message":"too big"}})");
  ASSERT_TRUE(take_your_time());
  const std::string body = chat_body(false, "m", ",\"user\":\"" + std::string(8 << 20, 'u') + "\"");
  const Reply reply = ask_once(gateway_.port(), chat_request(body), scaled(20s));
  EXPECT_EQ(reply.status, 413) << reply.raw.substr(0, 500);
  EXPECT_EQ(reply.body, R"({"error":{"message":"too big"}})");
}

// 100 MB in one unary answer: relayed as it comes, held nowhere.
TEST_F(HostileBackend, ThatSendsAHundredMegabytesTakesNoMemory) {
  constexpr std::size_t piece = 1 << 20, pieces = 100;
  upstream_.set_script([](Exchange& x) {
    x.write(std::string(json_head) + "Content-Length: " + std::to_string(piece * pieces) + "\r\n\r\n");
    const std::string bytes(piece, 'b');
    for (std::size_t n = 0; n < pieces; ++n)
      if (!x.write(bytes)) return;
  });
  ASSERT_TRUE(take_your_time());
  const double before = gateway_.resident_mib();
  RawClient caller(gateway_.port());
  caller.send(chat_request(chat_body(false)));
  const Reply begun = caller.read_reply(scaled(20s), [](const Reply& r) { return r.body.size() > (40u << 20); });
  EXPECT_EQ(begun.status, 200);
  if (!product_sanitized()) {
    EXPECT_LT(gateway_.resident_mib() - before, 4);
  }
  const Reply whole = caller.read_reply(scaled(60s));
  EXPECT_EQ(whole.body.size(), piece * pieces);
  EXPECT_EQ(whole.body.find_first_not_of('b'), std::string::npos);
}

// A reset in the middle of a stream ends it with one error event; the caller's connection closes with it.
TEST_F(HostileBackend, ThatResetsAStreamLeavesOneErrorEvent) {
  upstream_.set_script([](Exchange& x) {
    x.write(stream_head());
    x.write(chunk(role_event()) + chunk(content_event("w")) + "40\r\ndata: {\"half");
    x.wait(50ms);
    x.reset();
  });
  const Reply reply = ask_once(gateway_.port(), chat_request(chat_body(true)), scaled(10s));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(content_of(reply.body), "w");
  EXPECT_EQ(reply.body.find("half"), std::string::npos);
  EXPECT_NE(last_data_of(reply.body).find("\"stream_cut\""), std::string::npos) << reply.body;
}

// An answer over 256 KiB has begun to pass when it breaks off: it can only be broken off too, and nobody left.
TEST_F(HostileBackend, ThatBreaksALargeAnswerIsBookedAsACut) {
  ASSERT_TRUE(take_your_time());
  upstream_.set_script([](Exchange& x) {
    x.write(std::string(json_head) + "Content-Length: 600000\r\n\r\n" + std::string(500'000, ' '));
    x.close();
  });
  const Reply reply = ask();
  EXPECT_EQ(reply.status, 200);
  EXPECT_FALSE(reply.complete);
  const auto line = gateway_.access_lines(1).front();
  EXPECT_EQ(line["outcome"], "cut");
  EXPECT_EQ(line["cause"], "stream_cut");
  EXPECT_EQ(gateway_.metric("headgate_cancelled_by_caller_total"), 0);
  EXPECT_EQ(gateway_.metric("headgate_streams_cut_total"), 1);
}

}  // namespace
}  // namespace headgate::support
