// What scripted model servers say: whole replies, streams in the OpenAI chat format, and the good server that the cases
// speak of: 20 ms, usage 7/5, five content events.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/scripted_upstream.hpp"

namespace headgate::support {

// A reply with Content-Length. `headers`: more lines, each with CR LF.
std::string plain_reply(int status, std::string_view body, std::string_view headers = {},
                        std::string_view type = "application/json");
// 200, text/event-stream, chunked.
std::string stream_head(std::string_view headers = {});
// The bytes as one chunk; final_chunk() ends the body.
std::string chunk(std::string_view bytes);
std::string final_chunk();

// Events with their blank line. The model name stands in every one.
std::string role_event(std::string_view model = "m");
std::string content_event(std::string_view text, std::string_view model = "m");
std::string finish_event(std::string_view model = "m", std::string_view reason = "stop");
std::string usage_event(int input, int output, std::string_view model = "m");
std::string done_event();
std::string error_event(std::string_view code, std::string_view message = "refused by the script");

struct Good {
  Nanos delay = 20ms;
  int input = 7, output = 5;
  std::vector<std::string> words = {"one ", "two ", "three ", "four ", "five"};
};
// The events of a good streamed answer: role, contents, finish, usage if asked for, [DONE].
std::vector<std::string> good_events(std::string_view model, bool usage, const Good& good = {});
std::string good_body(std::string_view model, const Good& good = {});

// Answers chat requests well: streamed when asked to, with the usage event only when asked for, repeating the
// request's model name.
Script good_answer(Good good = {});
// Every request gets this reply after `delay`.
Script always(std::string reply, Nanos delay = 0ms);
// Reads the request, says nothing, and waits for the peer to go.
Script silent(Nanos at_most = 60s);

}  // namespace headgate::support
