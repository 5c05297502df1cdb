#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <string>

#include "backends/wire/head.hpp"
#include "fuzz/targets.hpp"

namespace headgate::fuzz {
namespace {

using namespace wire;

// The same bytes, coming in two parts.
template <class Head>
Read in_two_parts(std::string_view bytes, std::size_t cut, Read (HeadReader::*read)(std::string_view, Head&),
                  HeadReader& reader, Head& head) {
  const Read first = (reader.*read)(bytes.substr(0, cut), head);
  return first == Read::incomplete ? (reader.*read)(bytes, head) : first;
}

template <class Head>
void cut_anywhere(std::string_view bytes, Read (HeadReader::*read)(std::string_view, Head&)) {
  HeadReader reader;
  Head whole;
  const Read expected = (reader.*read)(bytes, whole);
  const std::size_t size = whole.bytes;
  check(expected != Read::complete || size <= bytes.size(), "a head is longer than its bytes");
  for (std::size_t cut = 1; cut < bytes.size(); cut += 1 + bytes.size() / 16) {
    HeadReader other;
    Head head;
    const Read got = in_two_parts(bytes, cut, read, other, head);
    check(got == expected, "a head in two parts reads differently");
    check(got != Read::complete || head.bytes == size, "a head in two parts has another length");
  }
}

void beside_beast(std::string_view bytes) {
  HeadReader reader;
  RequestHead head;
  if (reader.request(bytes, head) != Read::complete) return;
  namespace http = boost::beast::http;
  http::request_parser<http::empty_body> parser;
  parser.body_limit(boost::none);
  parser.header_limit(1 << 20);
  const std::size_t lead = bytes.starts_with("\r\n") ? 2 : 0;  // an empty line before a request is forgiven here
  boost::beast::error_code failed;
  parser.put(boost::asio::buffer(bytes.data() + lead, head.bytes - lead), failed);
  // HTTP/1.2 and up, and a Connection that is no list of tokens, pass here on purpose.
  if (failed == http::error::bad_version || failed == http::error::bad_value) return;
  check(!failed, "a request head passes that Beast refuses");
  check(parser.is_header_done(), "Beast wants more of a head that is complete here");
  check(parser.get().target() == boost::beast::string_view(head.target.data(), head.target.size()),
        "another target than Beast's");
  check(parser.chunked() == (head.framing == Framing::chunked), "another framing than Beast's");
  if (head.framing == Framing::length) {
    check(parser.content_length().value_or(0) == head.content_length, "another length than Beast's");
  }
}

}  // namespace

void head(std::string_view bytes) {
  cut_anywhere<RequestHead>(bytes, &HeadReader::request);
  cut_anywhere<ResponseHead>(bytes, &HeadReader::response);
  beside_beast(bytes);
}

}  // namespace headgate::fuzz
