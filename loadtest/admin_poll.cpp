#include "loadtest/admin_poll.hpp"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <nlohmann/json.hpp>

#include "backends/wire/framing.hpp"
#include "backends/wire/head.hpp"

namespace headgate::loadtest {
namespace {

namespace asio = backends::asio;
constexpr std::size_t answer_bytes_max = 4 << 20;
constexpr unsigned patience = 2;

std::string text_of(const nlohmann::json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string{};
}

std::uint64_t count_of(const nlohmann::json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}

// The body of a whole answer, without its framing; empty unless it is a complete 200.
std::string body_of(std::string_view bytes) {
  wire::HeadReader reader;
  wire::ResponseHead head;
  if (reader.response(bytes, head) != wire::Read::complete || head.status != 200) return {};
  wire::BodyMeter meter(head.framing, head.content_length);
  bytes.remove_prefix(head.bytes);
  std::string body;
  while (!bytes.empty() && !meter.done() && !meter.bad()) {
    const wire::BodyMeter::Piece piece = meter.next(bytes);
    body += piece.data;
    bytes.remove_prefix(piece.consumed);
  }
  return meter.done() || meter.ends_at_eof() ? body : std::string{};
}

}  // namespace

AdminState parse_admin_state(const std::string& body) {
  AdminState state;
  const auto document = nlohmann::json::parse(body, nullptr, false);
  if (!document.is_object()) return state;
  for (const auto& [key, list] : document.items()) {
    if (!list.is_array()) continue;
    for (const auto& entry : list) {
      if (!entry.is_object()) continue;
      if (key == "backends") {
        state.backends.push_back({text_of(entry, "name"), text_of(entry, "pool"), text_of(entry, "health"),
                                  count_of(entry, "in_flight"), count_of(entry, "max_in_flight")});
      } else if (key == "pools") {
        state.pools.push_back({text_of(entry, "name"), count_of(entry, "queued")});
      }
    }
  }
  return state;
}

// Shared: a pending operation's handler must outlive a poll that gave the question up.
struct AdminPoll::Question : std::enable_shared_from_this<Question> {
  explicit Question(asio::io_context& io) : socket(io.get_executor()) {}

  void ask(const asio::ip::tcp::endpoint& to, AdminPoll* asker) {
    poll = asker;
    socket.async_connect(to, [self = shared_from_this()](const backends::ErrorCode& error) {
      if (self->poll == nullptr) return;
      if (error) return self->end({});
      asio::async_write(self->socket, asio::buffer(self->poll->request_),
                        [keep = self](const backends::ErrorCode&, std::size_t) {});
      self->read();
    });
  }
  void read() {
    socket.async_read_some(asio::buffer(chunk),
                           [self = shared_from_this()](const backends::ErrorCode& error, std::size_t n) {
                             if (self->poll == nullptr) return;
                             self->answer.append(self->chunk.data(), n);
                             if (!error && self->answer.size() < answer_bytes_max) return self->read();
                             self->end(body_of(self->answer));
                           });
  }
  void end(const std::string& body) {
    poll->state_ = parse_admin_state(body);
    poll->open_.reset();
    poll = nullptr;
  }

  backends::Socket socket;
  AdminPoll* poll = nullptr;  // null once given up
  std::string answer;
  std::array<char, 8192> chunk{};
};

AdminPoll::AdminPoll(asio::io_context& io, asio::ip::tcp::endpoint endpoint, std::string authority)
    : io_(io),
      endpoint_(std::move(endpoint)),
      request_("GET /admin/state HTTP/1.1\r\nHost: " + authority + "\r\nConnection: close\r\n\r\n") {}

AdminPoll::~AdminPoll() {
  if (open_ == nullptr) return;
  open_->poll = nullptr;
  backends::ErrorCode ignored;
  open_->socket.close(ignored);
}

void AdminPoll::ask() {
  if (open_ != nullptr && ++waited_ < patience) return;
  if (open_ != nullptr) {
    open_->poll = nullptr;
    backends::ErrorCode ignored;
    open_->socket.close(ignored);
    state_ = {};
  }
  waited_ = 0;
  open_ = std::make_shared<Question>(io_);
  open_->ask(endpoint_, this);
}

}  // namespace headgate::loadtest
