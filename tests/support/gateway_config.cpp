#include "support/gateway_config.hpp"

#include "support/scripted_upstream.hpp"

namespace headgate::support {
namespace {

nlohmann::json pool_of(const nlohmann::json& backends) {
  nlohmann::json pool;
  pool["model"] = "m";
  pool["api_key"] = "K1";
  pool["balance"] = "round_robin";
  pool["backends"] = backends;
  return pool;
}

nlohmann::json config_with(const std::vector<std::string>& pools) {
  nlohmann::json config;
  nlohmann::json& route = config["routes"]["m"];
  route["pools"] = pools;
  route["retry"]["attempts_max"] = 1;
  for (const char* limit : {"connect", "first_byte", "first_token", "idle", "total_unary", "total_stream"})
    route["timeouts"][limit] = "60s";
  nlohmann::json key;
  key["name"] = "k";
  key["key"] = "GW1";
  config["keys"] = nlohmann::json::array({key});
  config["drain"] = "1s";
  return config;
}

}  // namespace

nlohmann::json backend_config(const std::string& name, std::uint16_t port, int slots) {
  nlohmann::json backend;
  backend["name"] = name;
  backend["url"] = "http://127.0.0.1:" + std::to_string(port);
  backend["slots"] = slots;
  return backend;
}

nlohmann::json basic_config(const std::vector<const ScriptedUpstream*>& upstreams) {
  nlohmann::json backends = nlohmann::json::array();
  for (const ScriptedUpstream* upstream : upstreams)
    backends.push_back(backend_config("u" + std::to_string(backends.size() + 1), upstream->port()));
  nlohmann::json config = config_with({"p"});
  config["pools"]["p"] = pool_of(backends);
  return config;
}

nlohmann::json chain_config(const std::vector<const ScriptedUpstream*>& upstreams) {
  std::vector<std::string> names;
  nlohmann::json pools;
  for (const ScriptedUpstream* upstream : upstreams) {
    const std::string n = std::to_string(names.size() + 1);
    names.push_back("p" + n);
    pools[names.back()] = pool_of(nlohmann::json::array({backend_config("u" + n, upstream->port())}));
  }
  nlohmann::json config = config_with(names);
  config["pools"] = pools;
  return config;
}

}  // namespace headgate::support
