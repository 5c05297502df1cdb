// Text in the Prometheus exposition format: family(), then its samples.
#pragma once

#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "gateway/json_text.hpp"

namespace headgate::gateway {

// A name and its label value.
struct Label {
  std::string_view name, value;
};

class MetricPage {
 public:
  std::string text;

  void family(std::string_view name, std::string_view help, std::string_view type) {
    name_ = name;
    ((((text += "# HELP ") += name_) += ' ') += help) += '\n';
    ((((text += "# TYPE ") += name_) += ' ') += type) += '\n';
  }

  void sample(std::uint64_t value, std::initializer_list<Label> labels = {}) {
    start("", labels);
    append_number(text, value);
    text += '\n';
  }
  void sample_double(double value, std::initializer_list<Label> labels = {}) {
    start("", labels);
    append_double(text, value);
    text += '\n';
  }

  // Counts between bounds become cumulative ones; `scale` of the bounds and the sum makes seconds.
  template <class Buckets, class Bounds>
  void histogram(const Buckets& buckets, const Bounds& bounds, double scale, std::uint64_t sum,
                 std::initializer_list<Label> labels) {
    std::uint64_t so_far = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      so_far += buckets[i].get();
      char bound[32] = "+Inf";
      std::size_t length = 4;
      if (i < bounds.size()) {
        const double seconds = static_cast<double>(bounds[i]) / scale;
        const auto end = std::to_chars(bound, bound + sizeof bound, seconds, std::chars_format::fixed).ptr;
        length = static_cast<std::size_t>(end - bound);
      }
      start("_bucket", labels, {"le", {bound, length}});
      append_number(text, so_far);
      text += '\n';
    }
    start("_sum", labels);
    append_double(text, static_cast<double>(sum) / scale);
    text += '\n';
    start("_count", labels);
    append_number(text, so_far);
    text += '\n';
  }

 private:
  static void append_label_value(std::string& out, std::string_view value) {
    for (const char c : value) {
      switch (c) {
        case '\\':
          out += "\\\\";
          break;
        case '"':
          out += "\\\"";
          break;
        case '\n':
          out += "\\n";
          break;
        default:
          out += c;
          break;
      }
    }
  }
  void start(std::string_view suffix, std::initializer_list<Label> labels, Label last = {}) {
    (text += name_) += suffix;
    char before = '{';
    const auto add = [&](const Label& label) {
      ((text += before) += label.name) += "=\"";
      append_label_value(text, label.value);
      text += '"';
      before = ',';
    };
    for (const Label& label : labels) add(label);
    if (!last.name.empty()) add(last);
    text += before == '{' ? " " : "} ";
  }

  std::string_view name_;
};

}  // namespace headgate::gateway
