// One caller: requests one after another until either side has had enough.
#pragma once

#include "backends/io/link.hpp"
#include "backends/io/task.hpp"
#include "gateway/exchange.hpp"

namespace headgate::gateway {

backends::Task<> serve_connection(Shard& shard, backends::LinkPtr link, Peer peer);

}  // namespace headgate::gateway
