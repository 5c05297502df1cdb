#include "support/answers.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace headgate::support {
namespace {

std::string event(const std::string& model, const nlohmann::ordered_json& choices,
                  const nlohmann::ordered_json& usage) {
  nlohmann::ordered_json payload = {{"id", "chatcmpl-1"},
                                    {"object", "chat.completion.chunk"},
                                    {"created", 1},
                                    {"model", model},
                                    {"choices", choices}};
  if (!usage.is_null()) payload["usage"] = usage;
  return "data: " + payload.dump() + "\n\n";
}

nlohmann::ordered_json choice(const nlohmann::ordered_json& delta, const nlohmann::ordered_json& finish) {
  nlohmann::ordered_json one;
  one["index"] = 0;
  one["delta"] = delta;
  one["finish_reason"] = finish;
  return nlohmann::ordered_json::array({one});
}

nlohmann::ordered_json usage_of(int input, int output) {
  return {{"prompt_tokens", input}, {"completion_tokens", output}, {"total_tokens", input + output}};
}

const char* reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 429:
      return "Too Many Requests";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Scripted";
  }
}

}  // namespace

std::string plain_reply(int status, std::string_view body, std::string_view headers, std::string_view type) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " " + reason_phrase(status) + "\r\n";
  if (!type.empty()) text.append("Content-Type: ").append(type).append("\r\n");
  text.append(headers).append("Content-Length: ").append(std::to_string(body.size())).append("\r\n\r\n");
  return text.append(body);
}

std::string stream_head(std::string_view headers) {
  std::string text = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
  return text.append(headers).append("Transfer-Encoding: chunked\r\n\r\n");
}

std::string chunk(std::string_view bytes) {
  char size[24];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return std::string(size).append(bytes).append("\r\n");
}

std::string final_chunk() { return "0\r\n\r\n"; }

std::string role_event(std::string_view model) {
  return event(std::string(model), choice({{"role", "assistant"}}, nullptr), nullptr);
}

std::string content_event(std::string_view text, std::string_view model) {
  return event(std::string(model), choice({{"content", text}}, nullptr), nullptr);
}

std::string finish_event(std::string_view model, std::string_view reason) {
  return event(std::string(model), choice(nlohmann::ordered_json::object(), reason), nullptr);
}

std::string usage_event(int input, int output, std::string_view model) {
  return event(std::string(model), nlohmann::ordered_json::array(), usage_of(input, output));
}

std::string done_event() { return "data: [DONE]\n\n"; }

std::string error_event(std::string_view code, std::string_view message) {
  nlohmann::ordered_json error;
  error["error"] = {{"message", message}, {"type", "server_error"}, {"param", nullptr}, {"code", code}};
  return "data: " + error.dump() + "\n\n";
}

std::vector<std::string> good_events(std::string_view model, bool usage, const Good& good) {
  std::vector<std::string> events{role_event(model)};
  for (const std::string& word : good.words) events.push_back(content_event(word, model));
  events.push_back(finish_event(model));
  if (usage) events.push_back(usage_event(good.input, good.output, model));
  events.push_back(done_event());
  return events;
}

std::string good_body(std::string_view model, const Good& good) {
  std::string text;
  for (const std::string& word : good.words) text += word;
  nlohmann::ordered_json answer;
  answer["index"] = 0;
  answer["message"] = {{"role", "assistant"}, {"content", text}};
  answer["finish_reason"] = "stop";
  nlohmann::ordered_json body;
  body["id"] = "chatcmpl-1";
  body["object"] = "chat.completion";
  body["created"] = 1;
  body["model"] = model;
  body["choices"] = nlohmann::ordered_json::array({answer});
  body["usage"] = usage_of(good.input, good.output);
  return body.dump();
}

Script good_answer(Good good) {
  return [good = std::move(good)](Exchange& x) {
    const auto asked = x.arrival().json();
    const std::string model = asked.is_object() ? asked.value("model", "m") : "m";
    const bool stream = asked.is_object() && asked.value("stream", false);
    if (!x.wait(good.delay)) return;
    if (!stream) {
      x.write_last(plain_reply(200, good_body(model, good)));
      return;
    }
    const bool usage = asked.contains("stream_options") && asked["stream_options"].is_object() &&
                       asked["stream_options"].value("include_usage", false);
    x.write(stream_head());
    for (const std::string& one : good_events(model, usage, good))
      if (!x.write(chunk(one))) return;
    x.write_last(final_chunk());
  };
}

Script always(std::string reply, Nanos delay) {
  return [reply = std::move(reply), delay](Exchange& x) {
    if (x.wait(delay)) x.write_last(reply);
  };
}

Script silent(Nanos at_most) {
  return [at_most](Exchange& x) {
    x.wait_until_gone(at_most);
    x.close();
  };
}

}  // namespace headgate::support
