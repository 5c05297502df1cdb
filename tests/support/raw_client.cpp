#include "support/raw_client.hpp"

#include <nlohmann/json.hpp>
#include <thread>

namespace headgate::support {

bool RawClient::send(std::string_view bytes, Nanos within) {
  const bool sent = send_all(socket_, bytes, after(now(), within));
  sent_ = now();
  return sent;
}

bool RawClient::send_pieces(const std::vector<std::string>& pieces, Nanos gap, Nanos within) {
  for (const std::string& piece : pieces) {
    if (!send(piece, within)) return false;
    std::this_thread::sleep_for(gap);  // the gap is the input, not a wait for anything
  }
  return true;
}

Reply RawClient::read_reply(Nanos within, const std::function<bool(const Reply&)>& enough) {
  const Time deadline = after(now(), within);
  if (reader_.reply().complete && !stopped_early_) reader_ = ReplyReader();
  stopped_early_ = false;
  reader_.reply().sent = sent_;
  if (!surplus_.empty()) {
    const std::size_t used = reader_.take(surplus_, now());
    surplus_.erase(0, used);
  }
  for (;;) {
    Reply& reply = reader_.reply();
    stopped_early_ = enough && enough(reply);
    if (reply.complete || reply.closed || reply.reset || stopped_early_) return reply;
    Received received = receive(socket_, deadline);
    const Time at = now();
    if (received.what == Got::nothing) {
      reply.ended_at = at;
      return reply;
    }
    if (received.what != Got::bytes) {
      reader_.end(at, received.what == Got::reset);
      continue;
    }
    const std::size_t used = reader_.take(received.bytes, at);
    surplus_ += received.bytes.substr(used);
  }
}

Reply RawClient::ask(std::string_view bytes, Nanos within) {
  send(bytes, within);
  return read_reply(within);
}

bool RawClient::closed_by_peer(Nanos within) {
  if (!surplus_.empty()) return false;
  const Received received = receive(socket_, after(now(), within));
  return received.what == Got::closed || received.what == Got::reset;
}

std::string request(std::string_view method, std::string_view target, std::string_view body, std::string_view headers) {
  std::string text;
  text.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: gateway.test\r\n").append(headers);
  if (!body.empty() || method == "POST") {
    text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  }
  text.append("\r\n").append(body);
  return text;
}

std::string chat_request(std::string_view body, std::string_view headers) {
  return request("POST", "/v1/chat/completions", body, headers);
}

std::string chat_body(bool stream, std::string_view model, std::string_view extra) {
  std::string body = R"({"model":")";
  body.append(model).append(R"(","messages":[{"role":"user","content":"say five words"}])");
  if (stream) body += R"(,"stream":true)";
  return body.append(extra).append("}");
}

Reply ask_once(std::uint16_t port, std::string_view bytes, Nanos within) { return RawClient(port).ask(bytes, within); }

std::string error_code_of(const Reply& reply) {
  const auto body = nlohmann::json::parse(reply.body, nullptr, false);
  if (!body.is_object() || !body.contains("error") || !body["error"].is_object()) return {};
  const auto& error = body["error"];
  return error.contains("code") && error["code"].is_string() ? error["code"].get<std::string>() : std::string();
}

std::string plain_error_fault(const Reply& reply) {
  if (reply.status < 400) return "status " + std::to_string(reply.status);
  if (!reply.complete) return "the reply is not complete: " + reply.raw;
  if (!reply.head.get("content-type").starts_with("application/json")) return "content type: " + reply.head.raw;
  const auto body = nlohmann::json::parse(reply.body, nullptr, false);
  if (!body.is_object() || !body.contains("error") || !body["error"].is_object()) return "body: " + reply.body;
  const auto& error = body["error"];
  for (const char* field : {"message", "type", "code"})
    if (!error.contains(field) || !error[field].is_string() || error[field].get<std::string>().empty())
      return std::string("no ") + field + " in: " + reply.body;
  return {};
}

}  // namespace headgate::support
