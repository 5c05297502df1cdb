#include "config/describe_pools.hpp"
#include "config/load.hpp"
#include "config/values.hpp"

namespace headgate::config {

std::string redacted(const Options& options) {
  return json_of(options, Any{}).dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headgate::config
