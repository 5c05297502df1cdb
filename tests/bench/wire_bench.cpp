// What the wire code costs per message: heads, chunk framing, body skim, stream events.
#include <benchmark/benchmark.h>

#include <string>

#include "backends/wire/framing.hpp"
#include "backends/wire/head.hpp"
#include "backends/wire/json_skim.hpp"
#include "backends/wire/sse_scan.hpp"

namespace headgate::wire {
namespace {

const std::string request_head =
    "POST /v1/chat/completions HTTP/1.1\r\n"
    "Host: gateway.example.com:8080\r\n"
    "Accept: application/json\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Connection: keep-alive\r\n"
    "Content-Type: application/json\r\n"
    "User-Agent: OpenAI/Python 1.82.0\r\n"
    "X-Stainless-Lang: python\r\n"
    "X-Stainless-Package-Version: 1.82.0\r\n"
    "X-Stainless-OS: Linux\r\n"
    "X-Stainless-Retry-Count: 0\r\n"
    "Authorization: Bearer sk-0123456789abcdef0123456789abcdef\r\n"
    "Content-Length: 1024\r\n\r\n";

void RequestHeadOf12Fields(benchmark::State& state) {
  HeadReader reader;
  RequestHead head;
  for (auto _ : state) {
    benchmark::DoNotOptimize(reader.request(request_head, head));
    benchmark::DoNotOptimize(head);
  }
}
BENCHMARK(RequestHeadOf12Fields);

// Prose with a line break now and then, as in prompts.
std::string prose(std::size_t size) {
  const std::string line =
      "The gateway reads the body once, decides by the few fields it needs, and sends the bytes on as they came. "
      "Nothing is printed again; \\\"quotes\\\" and breaks stay.\\n";
  std::string text;
  while (text.size() < size) text += line;
  text.resize(size);
  if (text.back() == '\\') text.back() = '.';
  return text;
}

std::string chat_body(std::size_t size) {
  std::string body = R"({"model":"small-chat","messages":[{"role":"system","content":"You are brief."},)";
  const std::string end = R"("}],"temperature":0.7,"max_tokens":256,"stream":true,"user":"caller-17"})";
  body += R"({"role":"user","content":")";
  return body + prose(size - body.size() - end.size()) + end;
}

// Many short turns and tool descriptions: more structure than text.
std::string tools_body(std::size_t size) {
  std::string body = R"({"model":"small-chat","stream":true,"tools":[)";
  const std::string tool =
      R"({"type":"function","function":{"name":"look_up","description":"Finds a record by its number.","parameters":)"
      R"({"type":"object","properties":{"number":{"type":"integer","minimum":1},"fields":{"type":"array","items":)"
      R"({"type":"string"}}},"required":["number"],"additionalProperties":false},"strict":true}})";
  const std::string end = R"(],"messages":[{"role":"user","content":"Go on."}]})";
  body += tool;
  while (body.size() + tool.size() + end.size() < size) body += ", " + tool;
  return body + end;
}

void skim(benchmark::State& state, const std::string& body) {
  const std::string padded = body + std::string(json_padding, '\0');
  Skimmer skimmer;
  Skim out;
  for (auto _ : state) {
    const SkimError error = skimmer.skim(std::string_view(padded).substr(0, body.size()), out);
    if (error != SkimError::none) state.SkipWithError("refused");
    benchmark::DoNotOptimize(out);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * body.size()));
}
BENCHMARK_CAPTURE(skim, chat_1k, chat_body(1024));
BENCHMARK_CAPTURE(skim, chat_16k, chat_body(16384));
BENCHMARK_CAPTURE(skim, tools_1k, tools_body(1024));
BENCHMARK_CAPTURE(skim, tools_16k, tools_body(16384));

void event(benchmark::State& state, const std::string& text) {
  EventEnd end;
  for (auto _ : state) {
    const std::size_t size = end.find(text);
    const EventFacts facts = read_event(std::string_view(text).substr(0, size));
    if (facts.malformed) state.SkipWithError("malformed");
    benchmark::DoNotOptimize(facts);
  }
}
BENCHMARK_CAPTURE(
    event, chunk_200,
    std::string(R"(data: {"id":"chatcmpl-9a8b7c6d5e4f","object":"chat.completion.chunk","created":1733000000,)"
                R"("model":"small-chat","choices":[{"index":0,"delta":{"content":" gateway"},)"
                R"("logprobs":null,"finish_reason":null}]})") +
        "\n\n");
BENCHMARK_CAPTURE(
    event, usage,
    std::string(R"(data: {"id":"chatcmpl-9a8b7c6d5e4f","object":"chat.completion.chunk","created":1733000000,)"
                R"("model":"small-chat","choices":[],"usage":{"prompt_tokens":17,"completion_tokens":42,)"
                R"("total_tokens":59,"prompt_tokens_details":{"cached_tokens":16}}})") +
        "\n\n");

void ChunkOf200Bytes(benchmark::State& state) {
  const std::string chunk = "c8\r\n" + std::string(200, 'x') + "\r\n";
  BodyMeter meter(Framing::chunked, 0);
  for (auto _ : state) benchmark::DoNotOptimize(meter.next(chunk));
}
BENCHMARK(ChunkOf200Bytes);

}  // namespace
}  // namespace headgate::wire
