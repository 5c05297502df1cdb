// What HTTP.md promises of the budgets that a caller states: x-headgate-deadline-ms and the SDKs' own timeouts.
#include <gtest/gtest.h>

#include <thread>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"
#include "support/machine_lag.hpp"

namespace headgate::support {
namespace {

// Content at once and every 100 ms for `n` times, then a good end.
Script every_100_ms(int n) {
  return [n](Exchange& x) {
    x.write(stream_head());
    const Time start = now();
    for (int i = 0; i < n; ++i) {
      x.write(chunk(content_event("w")));
      if (!x.wait_until(start + (i + 1) * 100ms)) return;
    }
    x.write(chunk(finish_event() + done_event()));
    x.write_last(final_chunk());
  };
}

class ContractDeadlines : public testing::Test {
 protected:
  void expect_about(Nanos measured, Nanos expected) const {
    EXPECT_GE(to_ms(measured), to_ms(expected - 100ms));
    EXPECT_LE(to_ms(measured), to_ms(expected + scaled(150ms) + lag_.slack()));
  }
  static void expect_cut(const Reply& reply) {
    EXPECT_EQ(reply.status, 200) << reply.raw;
    EXPECT_TRUE(reply.complete);
    EXPECT_EQ(content_of(reply.body).substr(0, 1), "w");
    EXPECT_NE(last_data_of(reply.body).find("\"error\""), std::string::npos) << reply.body;
    EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos);
  }
  static void expect_timeout(const Reply& reply) {
    EXPECT_EQ(reply.status, 504) << reply.raw;
    EXPECT_EQ(error_code_of(reply), "upstream_timeout");
    EXPECT_EQ(reply.head.get("x-should-retry"), "false");
  }
  Reply ask(bool stream, const std::string& lines) const {
    return ask_once(gateway_.port(), chat_request(chat_body(stream), headers_with(lines)), 20s);
  }

  ScriptedUpstream upstream_{silent()};
  GatewayProcess gateway_{basic_config({&upstream_})};
  MachineLag lag_;
};

// The whole answer must be finished by then, however lively it is.
TEST_F(ContractDeadlines, BoundAStreamInAll) {
  upstream_.set_script(every_100_ms(100));
  const Reply reply = ask(true, "x-headgate-deadline-ms: 1000\r\n");
  expect_cut(reply);
  expect_about(reply.took(), 1s);
  EXPECT_TRUE(eventually(scaled(1s), [&] { return upstream_.abandoned().size() == 1; }));
}

TEST_F(ContractDeadlines, CountFromTheFirstByte) {
  const std::string bytes = chat_request(chat_body(false), headers_with("x-headgate-deadline-ms: 1000\r\n"));
  const std::size_t head = bytes.find("\r\n\r\n") + 4;
  RawClient client(gateway_.port());
  const Time start = now();
  // Slowness of the caller is the input: of the head, then of the body.
  client.send_pieces({bytes.substr(0, 10), bytes.substr(10, head - 10)}, 300ms);
  client.send(bytes.substr(head));
  const Reply reply = client.read_reply();
  expect_timeout(reply);
  expect_about(reply.ended_at - start, 1s);
}

// The head comes at once, the first content never: of a stream, and no bound for what is not streamed.
TEST_F(ContractDeadlines, OfTheFirstContentBoundAStream) {
  upstream_.set_script([](Exchange& x) {
    x.write(stream_head() + chunk(role_event()));
    x.wait_until_gone(20s);
  });
  const Reply late = ask(true, "x-headgate-ttft-ms: 700\r\n");
  expect_about(late.took(), 700ms);
  EXPECT_NE(late.body.find("upstream_timeout"), std::string::npos) << late.raw;
  upstream_.set_script(good_answer());
  EXPECT_EQ(ask(false, "x-headgate-ttft-ms: 20000\r\n").status, 200);
  const Reply bad = ask(true, "x-headgate-ttft-ms: soon\r\n");
  EXPECT_EQ(bad.status, 400);
  EXPECT_NE(bad.body.find("x-headgate-ttft-ms must be a whole number"), std::string::npos) << bad.body;
}

TEST_F(ContractDeadlines, OutOfRangeAreClamped) {
  for (const char* value : {"86400001", "18446744073709551615", "18446744073709551616", "99999999999999999999999"}) {
    upstream_.set_script(good_answer());
    EXPECT_EQ(ask(false, std::string("x-headgate-deadline-ms: ") + value + "\r\n").status, 200) << value;
  }
  upstream_.set_script(silent());
  const Reply none_left = ask(false, "x-headgate-deadline-ms: 0\r\n");
  EXPECT_EQ(none_left.status, 504) << none_left.raw;
}

// Of a unary call the SDKs' timeouts bound the whole answer, the shorter of the two.
TEST_F(ContractDeadlines, OfTheSdksBoundAUnaryAnswer) {
  for (const char* lines : {"x-stainless-timeout: 0.5\r\n", "x-stainless-read-timeout: 0.5\r\n",
                            "x-stainless-timeout: 60\r\nx-stainless-read-timeout: 0.5\r\n"}) {
    const Reply reply = ask(false, lines);
    expect_timeout(reply);
    expect_about(reply.took(), 500ms);
  }
}

// Of a stream they bound the time to the head, not what follows it.
TEST_F(ContractDeadlines, OfTheSdksBoundTheHeadOfAStream) {
  const Reply late = ask(true, "x-stainless-timeout: 0.5\r\n");
  expect_timeout(late);
  expect_about(late.took(), 500ms);
  upstream_.set_script(every_100_ms(10));
  const Reply lively = ask(true, "x-stainless-timeout: 0.5\r\nx-stainless-read-timeout: 0.5\r\n");
  EXPECT_EQ(last_data_of(lively.body), "[DONE]") << lively.raw;
  EXPECT_EQ(content_of(lively.body), "wwwwwwwwww");
}

// The read timeout of a stream is also the longest silence in it.
TEST_F(ContractDeadlines, OfTheSdksBoundTheSilenceInAStream) {
  upstream_.set_script([](Exchange& x) {
    x.write(stream_head() + chunk(content_event("w")));
    x.wait_until_gone(20s);
  });
  const Reply reply = ask(true, "x-stainless-read-timeout: 0.5\r\n");
  expect_cut(reply);
  expect_about(reply.took(), 500ms);
}

TEST_F(ContractDeadlines, MalformedOnesOfTheSdksAreIgnored) {
  upstream_.set_script(good_answer({.delay = 200ms}));
  for (const char* value : {"", "0", "-1", "soon", "0.1s", "nan", "1e-1x", "0,1"}) {
    const std::string text = value;
    EXPECT_EQ(ask(false, "x-stainless-timeout: " + text + "\r\nx-stainless-read-timeout: " + text + "\r\n").status, 200)
        << value;
  }
}

}  // namespace
}  // namespace headgate::support
