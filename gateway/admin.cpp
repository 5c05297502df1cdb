#include "gateway/admin.hpp"

#include <array>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <list>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "backends/io/io.hpp"
#include "config/address.hpp"
#include "gateway/admin_rules.hpp"
#include "gateway/json_text.hpp"

namespace headgate::gateway {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using backends::AsioTask;
using backends::ErrorCode;
using backends::Executor;
using backends::no_throw;
using Tcp = asio::ip::tcp;
using Stream = beast::basic_stream<Tcp, Executor>;
using Acceptor = asio::basic_socket_acceptor<Tcp, Executor>;
using Clock = std::chrono::steady_clock;
using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor>;
using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

constexpr std::uint32_t head_max = 8 << 10;
constexpr std::uint64_t body_max = 64 << 10;
constexpr auto accept_pause = std::chrono::milliseconds(100);  // out of descriptors: others may give some back

std::string_view view(boost::string_view text) { return {text.data(), text.size()}; }

std::string error_body(std::string_view code, std::string_view message) {
  std::string out = "{\"error\":{\"message\":";
  append_quoted(out, message);
  out += ",\"type\":\"invalid_request_error\",\"param\":null,\"code\":";
  append_quoted(out, code);
  out += "}}";
  return out;
}

void append_list(std::string& out, std::string_view name, const std::vector<std::string>& texts) {
  out += ",\"";
  out += name;
  out += "\":[";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i != 0) out += ',';
    append_quoted(out, texts[i]);
  }
  out += ']';
}

std::string reload_body(const ReloadReport& report) {
  std::string out = report.ok ? "{\"ok\":true,\"version\":" : "{\"ok\":false,\"version\":";
  append_number(out, report.version);
  append_list(out, "problems", report.problems);
  append_list(out, "warnings", report.warnings);
  out += '}';
  return out;
}

std::string backend_body(std::string_view name, const BackendReport& report) {
  std::string out = "{\"name\":";
  append_quoted(out, name);
  out += report.drained ? ",\"drained\":true,\"weight\":" : ",\"drained\":false,\"weight\":";
  report.weight == 0 ? void(out += "null") : append_number(out, report.weight);
  out += '}';
  return out;
}

Response answer(std::uint16_t status, std::string body, std::string_view type = "application/json") {
  Response response(static_cast<http::status>(status), 11);
  response.set(http::field::content_type, boost::string_view(type.data(), type.size()));
  response.set(http::field::cache_control, "no-store");
  response.body() = std::move(body);
  return response;
}

AdminRequest read_head(const Request& request) {
  const auto one = [&](auto name) {
    const auto found = request.find(name);
    return found == request.end() || request.count(name) != 1 ? std::string_view() : view(found->value());
  };
  const std::string_view target = view(request.target());
  AdminRequest out;
  out.method = view(request.method_string());
  out.path = target.substr(0, target.find('?'));
  out.host = one(http::field::host);
  out.origin = request.count(http::field::origin) > 1 ? "several" : one(http::field::origin);
  out.authorization = one(http::field::authorization);
  out.admin_header = one("x-headgate-admin");
  return out;
}

Tcp::endpoint endpoint_of(const std::string& listen) {
  const auto at = config::parse_listen(listen);
  if (!at) throw std::invalid_argument("admin listener: " + listen + ": " + at.problem);
  return {asio::ip::make_address(at->host), at->port};
}

// Closing with unread bytes resets the connection, and the answer may be lost with it: read on for a moment.
AsioTask<void> linger(Stream& stream) {
  std::array<char, 512> rest;  // a larger frame is warned of by g++ 12, which sees Asio take it from elsewhere
  const asio::mutable_buffer window = asio::buffer(rest);
  stream.expires_after(std::chrono::seconds(1));
  std::size_t left = 1 << 18;
  while (left > rest.size()) {
    auto [error, bytes] = co_await stream.async_read_some(window, no_throw);
    if (error) co_return;
    left -= bytes;
  }
}

}  // namespace

struct AdminServer::Server : std::enable_shared_from_this<Server> {
  Server(asio::io_context& io, AdminSettings settings_, AdminHooks hooks_)
      : settings(std::move(settings_)), hooks(std::move(hooks_)), acceptor(io), pause(io) {
    const Tcp::endpoint at = endpoint_of(settings.listen);
    ErrorCode error;
    acceptor.open(at.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error && at.protocol() == Tcp::v6()) acceptor.set_option(asio::ip::v6_only(true), error);
    if (!error) acceptor.bind(at, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error) throw std::system_error(error, "admin listener " + settings.listen);
    port = acceptor.local_endpoint().port();
  }

  AdminSettings settings;
  AdminHooks hooks;
  Acceptor acceptor;
  Timer pause;
  std::uint16_t port = 0;
  std::list<Stream*> open;  // of each connection's coroutine, while it runs
  bool stopped = false;

  void stop();
  Response respond(const Request& request, const std::string& local_address);
  Response perform(const AdminVerdict& verdict, std::string_view body);
  static AsioTask<void> accept(std::shared_ptr<Server> server);
  static AsioTask<void> serve(std::shared_ptr<Server> server, backends::Socket socket);
  static AsioTask<void> converse(std::shared_ptr<Server> server, Stream& stream);
};

void AdminServer::Server::stop() {
  stopped = true;
  ErrorCode ignored;
  acceptor.close(ignored);
  pause.cancel();
  for (Stream* stream : open) stream->close();
}

Response AdminServer::Server::perform(const AdminVerdict& verdict, std::string_view body) {
  switch (verdict.path) {
    case AdminPath::metrics:
      return answer(200, hooks.metrics(), "text/plain; version=0.0.4; charset=utf-8");
    case AdminPath::state:
      return answer(200, hooks.state());
    case AdminPath::reload: {
      const ReloadReport report = hooks.reload();
      return answer(report.ok ? 200 : 400, reload_body(report));
    }
    case AdminPath::drain:
      hooks.drain();
      return answer(202, "{\"draining\":true}");
    case AdminPath::backend: {
      const BackendReport report = hooks.backend(verdict.name, body);
      if (report.status == 200) return answer(200, backend_body(verdict.name, report));
      return answer(report.status,
                    error_body(report.status == 404 ? "backend_not_found" : "invalid_setting", report.problem));
    }
    case AdminPath::healthz:
      return answer(200, "ok\n", "text/plain");
    case AdminPath::readyz:
      break;
  }
  return hooks.ready() ? answer(200, "ready\n", "text/plain") : answer(503, "not ready\n", "text/plain");
}

Response AdminServer::Server::respond(const Request& request, const std::string& local_address) {
  const AdminVerdict verdict = judge(read_head(request), {local_address, port, settings.token.reveal()});
  Response response;
  if (verdict.status == 0) {
    try {
      response = perform(verdict, request.body());
    } catch (const std::exception& failure) {  // a hook's bug costs its request, not the listener
      response = answer(500, error_body("internal", failure.what()));
    }
  } else {
    response = answer(verdict.status, error_body(verdict.code, verdict.message));
    if (!verdict.allow.empty()) {
      response.set(http::field::allow, boost::string_view(verdict.allow.data(), verdict.allow.size()));
    }
    if (verdict.status == 401) response.set(http::field::www_authenticate, "Bearer");
  }
  response.keep_alive(request.keep_alive());
  response.prepare_payload();
  if (request.method() == http::verb::head) response.body().clear();  // Content-Length stays
  return response;
}

AsioTask<void> AdminServer::Server::converse(std::shared_ptr<Server> server, Stream& stream) {
  ErrorCode gone;
  const std::string local = stream.socket().local_endpoint(gone).address().to_string();
  beast::flat_buffer buffer(head_max + body_max);
  while (!gone && !server->stopped) {
    std::optional<http::request_parser<http::string_body>> parser(std::in_place);
    parser->header_limit(head_max);
    parser->body_limit(body_max);
    stream.expires_after(server->settings.idle);
    auto [read_error, read] = co_await http::async_read(stream, buffer, *parser, no_throw);
    Response response;
    if (!read_error) {
      response = server->respond(parser->get(), local);
    } else if (read_error == http::error::header_limit || read_error == http::error::body_limit) {
      const bool head = read_error == http::error::header_limit;
      response = answer(head ? 431 : 413, head ? error_body("headers_too_large", "The head is over 8192 bytes")
                                               : error_body("body_too_large", "The body is over 65536 bytes"));
    } else if (read_error.category() == http::make_error_code(http::error::bad_method).category() &&
               read_error != http::error::end_of_stream && read_error != http::error::partial_message) {
      response = answer(400, error_body("bad_request", "Not a valid HTTP request"));
    } else {
      co_return;
    }
    if (read_error) {
      response.keep_alive(false);
      response.prepare_payload();
    }
    stream.expires_after(server->settings.idle);
    auto [write_error, written] = co_await http::async_write(stream, response, no_throw);
    if (write_error || !response.keep_alive()) break;
  }
  stream.socket().shutdown(Tcp::socket::shutdown_send, gone);
  co_await linger(stream);
}

AsioTask<void> AdminServer::Server::serve(std::shared_ptr<Server> server, backends::Socket socket) {
  Stream stream(std::move(socket));
  const auto place = server->open.insert(server->open.end(), &stream);
  co_await converse(server, stream);
  server->open.erase(place);
}

AsioTask<void> AdminServer::Server::accept(std::shared_ptr<Server> server) {
  const Executor executor = server->acceptor.get_executor();
  while (!server->stopped) {
    auto [error, socket] = co_await server->acceptor.async_accept(no_throw);
    if (server->stopped) co_return;
    if (error) {
      server->pause.expires_after(accept_pause);
      co_await server->pause.async_wait(no_throw);
      continue;
    }
    if (server->open.size() >= server->settings.connections_max) continue;  // closes it
    asio::co_spawn(executor, serve(server, std::move(socket)), asio::detached);
  }
}

AdminServer::AdminServer(asio::io_context& io, AdminSettings settings, AdminHooks hooks)
    : server_(std::make_shared<Server>(io, std::move(settings), std::move(hooks))) {}

AdminServer::~AdminServer() = default;

void AdminServer::start() { asio::co_spawn(server_->acceptor.get_executor(), Server::accept(server_), asio::detached); }

void AdminServer::stop() {
  asio::post(server_->acceptor.get_executor(), [server = server_] { server->stop(); });
}

void AdminServer::set_token(config::Secret token) {
  asio::post(server_->acceptor.get_executor(),
             [server = server_, token = std::move(token)] { server->settings.token = token; });
}

std::uint16_t AdminServer::port() const { return server_->port; }

}  // namespace headgate::gateway
