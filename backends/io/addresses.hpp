// Where a host name leads at the moment: written by who looks names up, read by who dials. Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/io/endpoint.hpp"

namespace headgate::backends {

class Addresses {
 public:
  using List = std::vector<Endpoint>;

  void put(List list) {
    const std::lock_guard lock(mutex_);
    list_ = std::make_shared<const List>(std::move(list));
  }
  std::shared_ptr<const List> get() const {  // empty: not known (yet)
    const std::lock_guard lock(mutex_);
    return list_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const List> list_ = std::make_shared<const List>();
};

}  // namespace headgate::backends
