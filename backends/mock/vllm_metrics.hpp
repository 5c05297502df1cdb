// A replica's state as vLLM shows it on /metrics: the names and units of its version 1 engine, for the model it answers
// to. https://docs.vllm.ai, "Production Metrics".
#pragma once

#include <string>
#include <string_view>

#include "backends/engine/engine.hpp"

namespace headgate::mock {

std::string print_vllm_metrics(const engine::Engine& engine, std::string_view model);

}  // namespace headgate::mock
