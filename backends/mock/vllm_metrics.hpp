// A replica's state as vLLM shows it on /metrics: the names and units of its version 1 engine, for the model it answers
// to. https://docs.vllm.ai, "Production Metrics". One more is its own: headgate_mock_itl_error_seconds.
#pragma once

#include <string>
#include <string_view>

#include "backends/engine/engine.hpp"
#include "backends/mock/itl_error.hpp"

namespace headgate::mock {

std::string print_metrics(const engine::Engine& engine, const ItlErrors& errors, std::string_view model);

}  // namespace headgate::mock
