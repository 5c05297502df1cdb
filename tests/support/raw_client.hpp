// A caller made of one blocking socket: it writes exactly the bytes it is given, in the writes it is given, and reads
// replies with a deadline, noting when each piece came. Used from one thread.
//
//   RawClient client(gateway.port());
//   client.send(chat_request(R"({"model":"m",...})"));
//   Reply reply = client.read_reply(5s);                               // the whole reply, or what came within 5 s
//   client.read_reply(5s, [](const Reply& r) { return r.body.size() > 100; });  // stop early, go on later:
//   reply = client.read_reply(5s);                                     // the same reply, to its end
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "support/http_text.hpp"
#include "support/socket.hpp"

namespace headgate::support {

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : socket_(connect_to_loopback(port)) {}

  // One write. False if the peer is gone or took too long.
  bool send(std::string_view bytes, Nanos within = 10s);
  // Each piece in a write of its own, `gap` apart.
  bool send_pieces(const std::vector<std::string>& pieces, Nanos gap, Nanos within = 10s);

  // Reads on in the current reply until it is complete, the connection ends, `enough` holds or time is up, and returns
  // what there is of it. After a complete reply the next call reads the next one, unless `enough` stopped it.
  // reply.sent is the end of the last send.
  Reply read_reply(Nanos within = 10s, const std::function<bool(const Reply&)>& enough = {});
  // send, then read_reply.
  Reply ask(std::string_view bytes, Nanos within = 10s);

  // True if the peer ends the connection in time without sending anything more.
  bool closed_by_peer(Nanos within);

  void close() { socket_.close(); }
  void reset() { socket_.reset(); }
  void finish() { socket_.finish(); }
  const Socket& socket() const { return socket_; }

 private:
  Socket socket_;
  ReplyReader reader_;
  std::string surplus_;  // bytes after the current reply
  Time sent_{};
  bool stopped_early_ = false;
};

// The key of basic_config's caller, alone and before other header lines.
constexpr const char* with_key = "Authorization: Bearer GW1\r\n";
inline std::string headers_with(const std::string& lines) { return with_key + lines; }

// A whole request: `headers` are lines with CR LF and take the place of the default Authorization: Bearer GW1.
std::string request(std::string_view method, std::string_view target, std::string_view body = {},
                    std::string_view headers = with_key);
// POST /v1/chat/completions with that body.
std::string chat_request(std::string_view body, std::string_view headers = with_key);
// {"model":..,"messages":[one short user message]}, streamed or not; `extra`: more fields, each led by a comma.
std::string chat_body(bool stream, std::string_view model = "m", std::string_view extra = {});

// One request on a connection of its own.
Reply ask_once(std::uint16_t port, std::string_view bytes, Nanos within = 10s);

// "" if the reply is a plain error: a status from 400 on, Content-Type application/json, and {"error":{...}} with a
// non-empty message, a type and a code; else what is wrong with it.
std::string plain_error_fault(const Reply& reply);
std::string error_code_of(const Reply& reply);  // error.code, or empty

}  // namespace headgate::support
