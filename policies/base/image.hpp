// The whole state of objects as bytes, and back: what a replay begins with in the middle of a run. A class names its
// fields once, for both ways:
//   template <class A> void image(A& a) { a(first_, second_); }
// A field left out comes back as a new object has it; tests/simulation restores worlds in their midst and would see
// it. Bytes are this build's alone: native width and order, no versions. Numbers, enums and bools as they are, times as
// nanoseconds, an optional a bool first, a vector its length in 8 bytes first.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "policies/base/time.hpp"

namespace headgate {

namespace detail {

template <class Self>
class ImageWalk {
 public:
  template <class... T>
  void operator()(T&... fields) {
    (one(fields), ...);
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  template <class T>
  void one(T& field) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      self().raw(&field, sizeof field);
    } else {
      field.image(self());
    }
  }
  void one(Nanos& field) { self().raw(&field, sizeof field); }
  void one(Time& field) { self().raw(&field, sizeof field); }
  template <class T>
  void one(std::optional<T>& field) {
    bool has = field.has_value();
    one(has);
    if (has && !field) field.emplace();
    if (!has) field.reset();
    if (has) one(*field);
  }
  template <class T, std::size_t N>
  void one(std::array<T, N>& field) {
    for (T& element : field) one(element);
  }
  template <class T>
  void one(std::vector<T>& field) {
    std::uint64_t size = field.size();
    one(size);
    if (!self().resize(field, size)) return;
    if constexpr (std::is_arithmetic_v<T>) {
      self().raw(field.data(), field.size() * sizeof(T));
    } else {
      for (T& element : field) one(element);
    }
  }
};

}  // namespace detail

class ImageWriter : public detail::ImageWalk<ImageWriter> {
 public:
  explicit ImageWriter(std::string& out) : out_(out) {}

 private:
  friend detail::ImageWalk<ImageWriter>;
  void raw(const void* from, std::size_t bytes) { out_.append(static_cast<const char*>(from), bytes); }
  template <class T>
  bool resize(std::vector<T>&, std::uint64_t) {
    return true;
  }
  std::string& out_;
};

class ImageReader : public detail::ImageWalk<ImageReader> {
 public:
  explicit ImageReader(std::string_view image) : rest_(image) {}
  // All was there, and nothing more.
  bool complete() const { return !short_ && rest_.empty(); }

 private:
  friend detail::ImageWalk<ImageReader>;
  void raw(void* to, std::size_t bytes) {
    short_ = short_ || bytes > rest_.size();
    if (short_ || bytes == 0) return;
    std::memcpy(to, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
  }
  template <class T>
  bool resize(std::vector<T>& field, std::uint64_t size) {
    short_ = short_ || size > rest_.size();  // an element has a byte at least
    if (!short_) field.resize(size);
    return !short_;
  }
  std::string_view rest_;
  bool short_ = false;
};

}  // namespace headgate
