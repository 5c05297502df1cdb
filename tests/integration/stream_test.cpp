// Relaying and reading event streams: cases RW-01 to RW-03.
#include <gtest/gtest.h>

#include <thread>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"
#include "support/machine_lag.hpp"

namespace headgate::support {
namespace {

constexpr const char* asks_usage = R"(,"stream_options":{"include_usage":true})";

// A content event padded to about 200 bytes; the last one also finishes.
std::string sized_event(int n, bool last) {
  nlohmann::json payload = nlohmann::json::parse(content_event("word " + std::to_string(n) + " ").substr(6));
  if (last) payload["choices"][0]["finish_reason"] = "stop";
  payload["system_fingerprint"] = std::string(200 - payload.dump().size() - 34, 'x');
  return "data: " + payload.dump() + "\n\n";
}

// Stage: the upstream writes its head at 0 s, a comment at 0.2 s, then 20 events of about 200 bytes, one write each,
// 200 ms apart. Each of these 22 must be at the caller at most 100 ms after its write, byte for byte, as an event
// stream without a length that must not be cached.
TEST(Stream, RW01_EventsPassWithinAHundredMilliseconds) {
  std::vector<std::string> parts{": hb\n\n"};
  for (int n = 1; n <= 20; ++n) parts.push_back(sized_event(n, n == 20));
  ScriptedUpstream upstream([&](Exchange& x) {
    const Time start = now();
    x.write(stream_head());
    for (std::size_t n = 0; n < parts.size(); ++n) {
      if (!x.wait_until(start + 200ms * static_cast<int>(n + 1))) return;
      x.write(chunk(parts[n]));
    }
    x.write_last(final_chunk());
  });
  GatewayProcess gateway(basic_config({&upstream}));
  const MachineLag lag;
  RawClient client(gateway.port());
  const Reply reply = client.ask(chat_request(chat_body(true)), 20s);
  const double late_most = to_ms(scaled(100ms) + lag.slack());

  ASSERT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.complete);
  std::string whole;
  EXPECT_LE(to_ms(reply.head_at - upstream.written().at(0).at), late_most) << "head";
  for (std::size_t n = 0; n < parts.size(); ++n) {
    EXPECT_NEAR(static_cast<double>(parts[n].size()), n == 0 ? 6 : 200, 20);
    whole += parts[n];
    const Nanos delay = reply.arrival_of(whole.size() - 1) - upstream.written().at(n + 1).at;
    EXPECT_LE(to_ms(delay), late_most) << "part " << n;
  }
  EXPECT_EQ(reply.body, whole);
  EXPECT_EQ(reply.head.get("content-type"), "text/event-stream");
  EXPECT_FALSE(reply.head.has("content-length"));
  EXPECT_NE(reply.head.get("cache-control").find("no-cache"), std::string::npos);
}

// One stream of four events whose content has characters of 2, 3 and 4 bytes.
std::string four_events(std::string_view line_end, std::string_view space) {
  std::string text;
  for (const std::string& event :
       {content_event("a\u00f1\u6f22\U0001f642"), finish_event(), usage_event(7, 5), done_event()}) {
    text.append("data:").append(space).append(event.substr(6, event.size() - 8));
    text.append(line_end).append(line_end);
  }
  return text;
}

std::vector<std::string> single_bytes(const std::string& text) {
  std::vector<std::string> pieces;
  for (const char byte : text) pieces.emplace_back(1, byte);
  return pieces;
}

// After every CR: its LF comes in the next write.
std::vector<std::string> cut_after_cr(const std::string& text) {
  std::vector<std::string> pieces(1);
  for (const char byte : text) {
    pieces.back() += byte;
    if (byte == '\r') pieces.emplace_back();
  }
  return pieces;
}

class StreamReads : public testing::Test {
 protected:
  // The caller must get `text` (or, where `may_end`, one more line end), and the request must count as a success.
  void expect_relayed(const std::vector<std::string>& pieces, bool chunked, bool blank_line_missing = false) {
    upstream_.set_script([=](Exchange& x) {
      const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
      x.write(chunked ? stream_head() : head);
      for (const std::string& piece : pieces) {
        x.write(chunked ? chunk(piece) : piece);
        if (!x.wait(1ms)) return;  // the next piece must be a read of its own
      }
      if (chunked) return static_cast<void>(x.write_last(final_chunk()));
      x.close();
    });
    std::string text;
    for (const std::string& piece : pieces) text += piece;
    const Reply reply = client_.ask(chat_request(chat_body(true, "m", asks_usage)), 30s);
    ++requests_;
    ASSERT_EQ(reply.status, 200) << reply.raw;
    EXPECT_TRUE(reply.complete);
    EXPECT_TRUE(reply.body == text ||
                (blank_line_missing && (reply.body == text + "\n" || reply.body == text + "\n\n")))
        << pieces.size() << " pieces, the first of " << pieces.front().size() << " bytes; sent:\n"
        << text << "got:\n"
        << reply.body;
    EXPECT_EQ(reply.body.find("\xEF\xBF\xBD"), std::string::npos);
  }

  void TearDown() override {
    for (const auto& line : gateway_.access_lines(requests_)) {
      EXPECT_EQ(line.value("in", -1), 7) << line;
      EXPECT_EQ(line.value("out", -1), 5) << line;
      EXPECT_EQ(line.value("estimated", true), false) << line;
      EXPECT_EQ(line.value("outcome", ""), "ok") << line;
    }
    EXPECT_EQ(upstream_.arrival_count(), requests_);
    EXPECT_EQ(gateway_.metric("headgate_sse_parse_errors_total"), 0);
    EXPECT_EQ(gateway_.metric("headgate_requests_total", {{"route", "m"}, {"outcome", "ok"}}),
              static_cast<double>(requests_));
  }

  ScriptedUpstream upstream_{good_answer()};
  GatewayProcess gateway_{basic_config({&upstream_})};
  RawClient client_{gateway_.port()};
  std::size_t requests_ = 0;
};

// Stage: a caller that asks for usage; the upstream serves the four events (content of several-byte characters, finish,
// usage 7/5, end mark) one byte per write, framed by chunks and by the connection's end. The caller's bytes equal the
// upstream's, usage is recorded as 7/5, no event counts as unreadable, the request is a success.
TEST_F(StreamReads, RW02_OneBytePerWrite) {
  expect_relayed(single_bytes(four_events("\n", " ")), true);
  expect_relayed(single_bytes(four_events("\n", " ")), false);
}

// The same four events in two writes, cut at every offset in turn; the same results.
TEST_F(StreamReads, RW02_TwoWritesCutAtEveryOffset) {
  const std::string text = four_events("\n", " ");
  for (std::size_t cut = 1; cut < text.size() && !HasFailure(); ++cut)
    expect_relayed({text.substr(0, cut), text.substr(cut)}, cut % 2 == 0 || cut > 40);
}

// The same with CR LF ends, CR and LF in separate writes.
TEST_F(StreamReads, RW02_CrLfEndsInSeparateWrites) {
  expect_relayed(cut_after_cr(four_events("\r\n", " ")), true);
  expect_relayed(cut_after_cr(four_events("\r\n", " ")), false);
}

// The same without the space after "data:".
TEST_F(StreamReads, RW02_NoSpaceAfterData) {
  expect_relayed({four_events("\n", "")}, true);
  expect_relayed(single_bytes(four_events("\n", "")), true);
}

// The same with the last blank line missing, which may be added; also without the last line's own end.
TEST_F(StreamReads, RW02_LastBlankLineMissing) {
  const std::string text = four_events("\n", " ");
  for (const bool chunked : {true, false}) {
    expect_relayed({text.substr(0, text.size() - 1)}, chunked, true);
    expect_relayed({text.substr(0, text.size() - 2)}, chunked, true);
  }
}

bool offers_compression(const Arrival& arrival) {
  for (const std::string& value : arrival.head.all("accept-encoding"))
    if (value.find("gzip") != std::string::npos || value.find("br") != std::string::npos) return true;
  return false;
}

// `text` in a gzip stream of stored blocks, so that each event can be flushed; the stream's header comes with the
// first.
std::string stored_block(const std::string& text, bool first) {
  std::string out = first ? std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10) : std::string();
  const auto size = static_cast<unsigned>(text.size());
  out += '\0';
  for (const unsigned half : {size, ~size}) {
    out += static_cast<char>(half & 0xff);
    out += static_cast<char>(half >> 8 & 0xff);
  }
  return out + text;
}

// Sends the events 200 ms apart, packed exactly when the request offers that.
Script packed_when_offered(std::vector<std::string> events) {
  return [events = std::move(events)](Exchange& x) {
    const bool packed = offers_compression(x.arrival());
    x.write(stream_head(packed ? "Content-Encoding: gzip\r\n" : ""));
    for (std::size_t n = 0; n < events.size(); ++n) {
      if (n > 0 && !x.wait(200ms)) return;
      x.write(chunk(packed ? stored_block(events[n], n == 0) : events[n]));
    }
    x.write_last(final_chunk());
  };
}

constexpr const char* offering = "Authorization: Bearer GW1\r\nAccept-Encoding: gzip, br\r\n";

// Stage: the caller offers gzip and br; the upstream packs its events exactly when it is offered that, five events
// 200 ms apart. The gateway never makes the offer, so the caller has five plain events, each at most 200 ms late, and
// the recorded usage is 7/5.
TEST(Stream, RW03_CompressionIsNotOfferedUpstream) {
  const std::vector<std::string> events{content_event("one "), content_event("two"), finish_event(), usage_event(7, 5),
                                        done_event()};
  ScriptedUpstream upstream(packed_when_offered(events));
  GatewayProcess gateway(basic_config({&upstream}));
  const MachineLag lag;
  const Reply reply = ask_once(gateway.port(), chat_request(chat_body(true, "m", asks_usage), offering), 20s);

  ASSERT_EQ(reply.status, 200);
  ASSERT_EQ(upstream.arrival_count(), 1u);
  EXPECT_FALSE(upstream.arrivals()[0].head.has("accept-encoding"));
  EXPECT_FALSE(reply.head.has("content-encoding"));
  EXPECT_EQ(data_of(reply.body).size(), 5u);
  std::string whole;
  for (std::size_t n = 0; n < events.size(); ++n) {
    whole += events[n];
    EXPECT_LE(to_ms(reply.arrival_of(whole.size() - 1) - upstream.written().at(n + 1).at),
              to_ms(scaled(200ms) + lag.slack()));
  }
  EXPECT_EQ(reply.body, whole);
  const auto line = gateway.access_lines(1).at(0);
  EXPECT_EQ(line.value("in", -1), 7);
  EXPECT_EQ(line.value("out", -1), 5);
  EXPECT_EQ(line.value("estimated", true), false);
}

// The same stage with a first event that is an error object and a second upstream to fall back to: the caller gets the
// second one's answer, whether or not it offered compression.
TEST(Stream, RW03_AnErrorEventHasTheSameOutcomeWhenCompressionIsOffered) {
  ScriptedUpstream failing(packed_when_offered({error_event("server_error")})), good(good_answer());
  for (const char* headers : {offering, "Authorization: Bearer GW1\r\n"}) {
    auto config = basic_config({&failing, &good});
    config["routes"]["m"]["retry"]["attempts_max"] = 2;
    const std::size_t before = failing.arrival_count();
    GatewayProcess gateway(config);
    const Reply reply = ask_once(gateway.port(), chat_request(chat_body(true, "m", asks_usage), headers));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(content_of(reply.body), "one two three four five");
    EXPECT_EQ(reply.body.find("\"error\""), std::string::npos);
    EXPECT_EQ(failing.arrival_count(), before + 1);
    EXPECT_EQ(good.arrival_count(), before + 1);
    EXPECT_EQ(gateway.metric("headgate_attempt_failures_total", {{"backend", "p/u1"}}), 1);
  }
}

// What fits between a writer and a reader that does not read.
std::size_t unread_bytes_that_fit() {
  const Socket listener = listen_on_loopback();
  const Socket reader = connect_to_loopback(listener.port());
  const Socket writer = accept_from(listener);
  const std::string piece(64 << 10, 'x');
  std::size_t fit = 0;
  while (send_all(writer, piece, after(now(), 100ms))) fit += piece.size();
  return fit;
}

// Twenty callers read nothing for 0.7 s, so that the gateway is held up in the middle of streams of about what fits
// unread, in one of them at the last events. The upstream ends its answers only after that. All of them are whole.
TEST(Stream, ACallerSlowToReadTheLastEventsGetsAWholeStream) {
  const std::size_t fit = unread_bytes_that_fit();
  const std::string event = content_event(std::string(48 << 10, 'w'));
  Event end;
  ScriptedUpstream upstream([&](Exchange& x) {
    x.write(stream_head());
    const std::size_t size = std::stoul(x.arrival().json().value("user", "0"));
    for (std::size_t written = 0; written < size; written += event.size()) x.write(chunk(event));
    x.write(chunk(finish_event() + done_event()));
    if (x.wait_for(end)) x.write_last(final_chunk());
  });
  auto config = basic_config({&upstream});
  config["pools"]["p"]["backends"][0]["slots"] = 32;
  GatewayProcess gateway(config);
  std::vector<RawClient> clients;
  for (std::size_t n = 0; n < 20; ++n) {
    const std::size_t size = fit + event.size() * n - event.size() * 10;
    clients.emplace_back(gateway.port())
        .send(chat_request(chat_body(true, "m", ",\"user\":\"" + std::to_string(size) + "\"")));
  }
  std::this_thread::sleep_for(700ms);  // the slowness is the input
  std::vector<std::jthread> readers;
  for (RawClient& client : clients)
    readers.emplace_back([&client] {
      const Reply reply =
          client.read_reply(30s, [](const Reply& r) { return r.body.ends_with(done_event()) || r.complete; });
      EXPECT_TRUE(reply.body.ends_with(done_event())) << reply.body.substr(reply.body.size() - 300);
    });
  readers.clear();
  end.set();
  for (RawClient& client : clients) {
    const Reply reply = client.read_reply(30s);
    EXPECT_TRUE(reply.complete);
    EXPECT_TRUE(reply.body.ends_with(done_event())) << reply.body.substr(reply.body.size() - 300);
  }
  EXPECT_EQ(gateway.metric("headgate_requests_total", {{"outcome", "ok"}}), 20);
  EXPECT_EQ(gateway.metric("headgate_attempt_failures_total", {{"backend", "p/u1"}}), 0);
}

}  // namespace
}  // namespace headgate::support
