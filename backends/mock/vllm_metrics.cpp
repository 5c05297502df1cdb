#include "backends/mock/vllm_metrics.hpp"

#include <cstdio>

namespace headgate::mock {
namespace {

void append_itl_errors(const ItlErrors& errors, std::string& page) {
  const std::string name = "headgate_mock_itl_error_seconds";
  page += "# HELP " + name + " How far the gaps between written tokens are from those meant.\n# TYPE " + name +
          " histogram\n";
  std::uint64_t so_far = 0;
  for (std::size_t n = 0; n < errors.counts().size(); ++n) {
    so_far += errors.counts()[n];
    char bound[32] = "+Inf";
    if (n < ItlErrors::bounds_ms.size()) std::snprintf(bound, sizeof bound, "%g", ItlErrors::bounds_ms[n] / 1000);
    page += name + "_bucket{le=\"" + bound + "\"} " + std::to_string(so_far) + "\n";
  }
  page +=
      name + "_sum " + std::to_string(errors.sum_ms() / 1000) + "\n" + name + "_count " + std::to_string(so_far) + "\n";
}

}  // namespace

std::string print_metrics(const engine::Engine& engine, const ItlErrors& errors, std::string_view model) {
  std::string label;
  for (const char c : model) {
    if (c == '"' || c == '\\') label += '\\';
    c == '\n' ? label += "\\n" : label += c;
  }
  std::string page;
  const auto family = [&](const char* name, const char* type, const char* help, double value) {
    char number[32];
    std::snprintf(number, sizeof number, "%.17g", value);
    page.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ");
    page.append(type).append("\n").append(name).append("{engine=\"0\",model_name=\"").append(label).append("\"} ");
    page.append(number).append("\n");
  };
  const engine::EngineCounts& counts = engine.counts();
  const engine::BlockPool& memory = engine.memory();
  const auto number = [](std::uint64_t count) { return static_cast<double>(count); };
  family("vllm:num_requests_running", "gauge", "Requests in the batch.", engine.running());
  family("vllm:num_requests_waiting", "gauge", "Requests waiting for a place in it.", engine.waiting());
  family("vllm:kv_cache_usage_perc", "gauge", "Part of the KV blocks that is held, 0 to 1.",
         number(memory.held()) / number(memory.size()));
  family("vllm:prefix_cache_queries_total", "counter", "Prompt tokens looked up in the prefix cache.",
         number(counts.prompt_tokens));
  family("vllm:prefix_cache_hits_total", "counter", "Prompt tokens found there.", number(counts.cached_tokens));
  family("vllm:num_preemptions_total", "counter", "Requests sent back for want of KV blocks.",
         number(counts.preemptions));
  family("vllm:prompt_tokens_total", "counter", "Prompt tokens of requests that began.", number(counts.prompt_tokens));
  family("vllm:generation_tokens_total", "counter", "Tokens generated.", number(counts.output_tokens));
  append_itl_errors(errors, page);
  return page;
}

}  // namespace headgate::mock
