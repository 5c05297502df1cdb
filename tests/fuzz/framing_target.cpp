#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>

#include "backends/wire/framing.hpp"
#include "fuzz/targets.hpp"

namespace headgate::fuzz {
namespace {

struct Taken {
  std::string data;
  std::size_t consumed = 0;
  bool done = false, bad = false;
  friend bool operator==(const Taken&, const Taken&) = default;
};

Taken take(std::string_view bytes, std::size_t step) {
  wire::BodyMeter meter(wire::Framing::chunked, 0);
  Taken taken;
  for (std::size_t from = 0; from < bytes.size() && !meter.done() && !meter.bad(); from += step) {
    std::string_view window = bytes.substr(from, step);
    while (!window.empty() && !meter.done() && !meter.bad()) {
      const wire::BodyMeter::Piece piece = meter.next(window);
      check(piece.consumed <= window.size(), "more is consumed than there is");
      check(piece.consumed > 0 || meter.done() || meter.bad(), "a piece takes nothing");
      taken.data.append(piece.data);
      taken.consumed += piece.consumed;
      window.remove_prefix(piece.consumed);
    }
  }
  taken.done = meter.done();
  taken.bad = meter.bad();
  check(meter.data_bytes() == taken.data.size() || meter.bad(), "data is counted wrongly");
  return taken;
}

// Beast reads extensions and trailer lines, which are dropped unread here: what it refuses in them is no matter.
void beside_beast(std::string_view bytes, const Taken& ours) {
  if (bytes.substr(0, ours.consumed).find(';') != std::string_view::npos) return;
  namespace http = boost::beast::http;
  http::response_parser<http::string_body> parser;
  parser.body_limit(boost::none);
  parser.header_limit(1 << 20);
  parser.eager(true);
  std::string message = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  message.append(bytes.substr(0, ours.consumed));
  boost::beast::error_code failed;
  std::string_view rest = message;
  while (!parser.is_done() && !rest.empty()) {
    const std::size_t n = parser.put(boost::asio::buffer(rest.data(), rest.size()), failed);
    if (failed || n == 0) break;
    rest.remove_prefix(n);
  }
  if (failed == http::error::bad_field || failed == http::error::bad_value || failed == http::error::bad_obs_fold ||
      failed == http::error::bad_transfer_encoding || failed == http::error::bad_content_length) {
    return;
  }
  check(!failed, "a chunked body passes that Beast refuses");
  check(parser.is_done(), "Beast wants more of a body that is complete here");
  check(parser.get().body() == ours.data, "other data than Beast's");
}

}  // namespace

void framing(std::string_view bytes) {
  const Taken whole = take(bytes, bytes.size() + 1);
  for (const std::size_t step : {1u, 2u, 3u, 7u}) {
    Taken other = take(bytes, step);
    if (whole.bad && other.bad) continue;  // how far it came before does not matter
    check(other == whole, "a chunked body cut in pieces reads differently");
  }
  if (whole.done && !whole.bad) beside_beast(bytes, whole);
}

}  // namespace headgate::fuzz
