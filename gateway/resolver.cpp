#include "gateway/resolver.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>

namespace headgate::gateway {

namespace asio = backends::asio;
using backends::Addresses;

namespace {
constexpr Nanos again_after = std::chrono::seconds(5);
}

struct Resolver::Name {
  Name(asio::io_context& io, std::string host_, std::uint16_t port_)
      : host(std::move(host_)), port(port_), resolver(io), timer(io) {}

  const std::string host;
  const std::uint16_t port;
  asio::ip::basic_resolver<asio::ip::tcp, backends::Executor> resolver;
  Timer timer;
  Addresses::List found;                          // last
  std::vector<std::shared_ptr<Addresses>> users;  // of the targets with this name
  bool known = false, failed = false, gone = false;
};

Resolver::Resolver(asio::io_context& io) : io_(io) {}

void Resolver::set_targets(const config::Catalog& catalog) {
  std::vector<std::shared_ptr<Name>> before = std::move(names_);
  names_.clear();
  for (const auto& target : catalog.targets) {
    if (!target || backends::Endpoint::numeric(target->host, target->port)) continue;
    const auto same = [&](const auto& name) { return name->host == target->host && name->port == target->port; };
    auto name = std::find_if(names_.begin(), names_.end(), same);
    if (name == names_.end()) {
      const auto kept = std::find_if(before.begin(), before.end(), same);
      if (kept != before.end()) {
        (*kept)->users.clear();
        names_.push_back(*kept);
        before.erase(kept);
      } else {
        names_.push_back(std::make_shared<Name>(io_, target->host, target->port));
        look_up(names_.back());
      }
      name = std::prev(names_.end());
    }
    target->addresses->put((*name)->found);
    (*name)->users.push_back(target->addresses);
  }
  for (const auto& name : before) {
    name->gone = true;
    name->resolver.cancel();
    name->timer.cancel();
  }
}

void Resolver::look_up(const std::shared_ptr<Name>& name) {
  name->resolver.async_resolve(name->host, std::to_string(name->port),
                               [this, name](const backends::ErrorCode& error, auto entries) {
                                 if (name->gone) return;
                                 name->known = true;
                                 if (error && !name->failed)
                                   spdlog::warn("backend name {} is not found: {}", name->host, error.message());
                                 name->failed = static_cast<bool>(error);
                                 if (!error) {
                                   name->found.clear();
                                   for (const auto& entry : entries) {
                                     const auto at = entry.endpoint();
                                     name->found.emplace_back(at.data(), static_cast<socklen_t>(at.size()));
                                   }
                                   for (const auto& user : name->users) user->put(name->found);
                                 }
                                 name->timer.expires_after(again_after);
                                 name->timer.async_wait([this, name](const backends::ErrorCode& stopped) {
                                   if (!stopped && !name->gone) look_up(name);
                                 });
                               });
}

bool Resolver::all_known() const {
  return std::all_of(names_.begin(), names_.end(), [](const auto& name) { return name->known; });
}

void Resolver::stop() { set_targets({}); }

}  // namespace headgate::gateway
