// A value read from text, or why there is none: `problem` is the rest of a sentence that began with `is "TEXT", `.
#pragma once

#include <optional>
#include <string>

namespace headgate::config {

template <class T>
struct Parsed {
  std::optional<T> value;
  std::string problem;

  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return *value; }
  const T* operator->() const { return &*value; }
};

}  // namespace headgate::config
