// Request heads against Beast's parser, on randomly damaged heads.
#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "backends/wire/head.hpp"

#include "backends/printable.hpp"

namespace headgate::wire {
namespace {

// What Beast refuses must be refused here too, save for what is let through on purpose; see the exceptions.
TEST(RequestHead, AcceptsNothingThatBeastRefuses) {
  std::mt19937_64 random(20240607);
  const std::vector<std::string> alphabet = {"\r\n",
                                             "\n",
                                             "\r",
                                             " ",
                                             "\t",
                                             ":",
                                             "Host: a\r\n",
                                             "Content-Length: 5\r\n",
                                             "Transfer-Encoding: chunked\r\n",
                                             "X: y\r\n",
                                             "a",
                                             "1",
                                             "HTTP/1.1",
                                             "/",
                                             "\x01",
                                             "\x7f",
                                             "\x80",
                                             ",",
                                             "Connection: close\r\n",
                                             "\r\n\r\n",
                                             "GET"};
  const std::string base = "POST /v1/x HTTP/1.1\r\nHost: a\r\nX: y z\r\nContent-Length: 5\r\n\r\n";
  int accepted = 0, refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = base;
    for (std::uint64_t edits = random() % 3 + 1; edits > 0; --edits) {
      const std::size_t at = random() % (bytes.size() + 1);
      bytes.replace(at, random() % 3, alphabet[random() % alphabet.size()]);
    }
    HeadReader reader;
    RequestHead head;
    const Read read = reader.request(bytes, head);
    if (read == Read::bad) ++refused;
    if (read != Read::complete) continue;
    ++accepted;
    namespace http = boost::beast::http;
    http::request_parser<http::empty_body> parser;
    parser.body_limit(boost::none);
    parser.header_limit(65536);
    const std::size_t lead = bytes.starts_with("\r\n") ? 2 : 0;  // exception 1: the forgiven empty line
    boost::beast::error_code ec;
    const std::size_t used = parser.put(boost::asio::buffer(bytes.data() + lead, head.bytes - lead), ec);
    if (ec == http::error::bad_version) continue;  // exception 2: HTTP/1.2 and up
    if (ec == http::error::bad_value) continue;    // exception 3: Connection is no list of tokens
    ASSERT_FALSE(ec) << ec.message() << ": " << printable(bytes);
    ASSERT_TRUE(parser.is_header_done()) << printable(bytes);
    EXPECT_EQ(used, head.bytes - lead) << printable(bytes);
    EXPECT_EQ(parser.get().target(), head.target) << printable(bytes);
    EXPECT_EQ(parser.get().method_string(), head.method) << printable(bytes);
    EXPECT_EQ(parser.keep_alive(), head.keep_alive) << printable(bytes);
    EXPECT_EQ(parser.chunked(), head.framing == Framing::chunked) << printable(bytes);
    if (head.framing == Framing::length) {
      EXPECT_EQ(parser.content_length().value_or(0), head.content_length) << printable(bytes);
    }
    std::multiset<std::pair<std::string, std::string>> theirs, ours;
    for (const auto& field : parser.get()) theirs.emplace(field.name_string(), field.value());
    for (const Field& field : head.fields) ours.emplace(field.name, field.value);
    EXPECT_EQ(theirs, ours) << printable(bytes);
  }
  EXPECT_GT(accepted, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace headgate::wire
