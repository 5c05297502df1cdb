// Strong ids. Backend, pool, route, endpoint and tenant ids are given out by the configuration and stay with the name
// for the life of the process (a reload that removes and re-adds a name finds its state); request ids are made by the
// Dispatcher.
#pragma once

#include <compare>
#include <cstdint>

namespace headgate::policies {

enum class EndpointId : std::uint32_t {};  // one model server address: in-flight limit and health are kept here
enum class BackendId : std::uint32_t {};   // an endpoint in a pool: what a Start names
enum class PoolId : std::uint32_t {};
enum class RouteId : std::uint32_t {};
enum class TenantId : std::uint32_t {};             // who pays; 0: callers without a key
enum class RequestId : std::uint64_t { none = 0 };  // slot and serial; a stale one is recognised and ignored

template <class Id>
constexpr std::size_t index(Id id) {
  return static_cast<std::size_t>(id);
}

// Which shard and which of its slots owns a request; echoed in each order.
struct Owner {
  std::uint16_t shard = 0;
  std::uint32_t slot = 0;
};

struct AttemptId {
  RequestId request = RequestId::none;
  std::uint8_t n = 0;  // 1 for the first attempt
  friend bool operator==(const AttemptId&, const AttemptId&) = default;
};

}  // namespace headgate::policies
