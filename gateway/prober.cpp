#include "gateway/prober.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <utility>

#include "backends/io/io.hpp"
#include "backends/io/shortage.hpp"
#include "policies/base/random.hpp"

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
using Resolver = asio::ip::basic_resolver<Tcp, Executor>;
using Timer =
    asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, Executor>;

constexpr std::uint32_t answer_max = 64 << 10;

bool same_place(const config::ProbeTarget& a, const config::ProbeTarget& b) {
  return a.endpoint == b.endpoint && a.host == b.host && a.port == b.port && a.authority == b.authority &&
         a.tls == b.tls && a.probe.path == b.probe.path && a.probe.interval == b.probe.interval &&
         a.probe.timeout == b.probe.timeout;
}

bool good(unsigned status) { return status >= 200 && status <= 299; }

struct Talk {
  explicit Talk(const std::string& path) : request(http::verb::get, path, 11) {}
  http::request<http::empty_body> request;
  beast::flat_buffer buffer{answer_max};
  http::response_parser<http::string_body> parser;
};

// Trusted, and expected to be somebody, as the requests' connections are.
struct TlsStream {
  TlsStream(backends::Socket& socket, const std::shared_ptr<const backends::TlsPeer>& server)
      : context((SSL_CTX_up_ref(server->trust().get()), server->trust().get())), stream(socket, context) {
    server->prepare(stream.native_handle());
  }
  asio::ssl::context context;
  asio::ssl::stream<backends::Socket&> stream;
};

// Empty, or what is wrong; so below.
template <class Stream>
AsioTask<std::string> converse(Stream& stream, const config::ProbeTarget& target) {
  // Kept out of the coroutine's frame: g++ 12 warns of frames over 1 KiB, which Asio takes from elsewhere.
  const auto talk = std::make_unique<Talk>(target.probe.path);
  auto& [request, buffer, parser] = *talk;
  request.set(http::field::host, target.authority);
  request.set(http::field::user_agent, "headgate-probe");
  request.set(http::field::connection, "close");
  auto [write_error, written] = co_await http::async_write(stream, request, no_throw);
  if (write_error) co_return "the connection broke: " + write_error.message();

  parser.header_limit(answer_max);
  parser.body_limit(boost::none);  // counted below
  auto [head_error, head_bytes] = co_await http::async_read_header(stream, buffer, parser, no_throw);
  if (head_error) co_return "no answer: " + head_error.message();
  if (!good(parser.get().result_int())) co_return "status " + std::to_string(parser.get().result_int());
  std::size_t total = head_bytes;
  while (total < answer_max && !parser.is_done()) {
    auto [body_error, body_bytes] = co_await http::async_read_some(stream, buffer, parser, no_throw);
    if (body_error) co_return "the answer broke off: " + body_error.message();
    total += body_bytes;
  }
  co_return std::string();
}

}  // namespace

struct Prober::Shared {
  std::uint64_t seed;
  Report report;
};

struct Prober::Probe {
  Probe(asio::io_context& io, config::ProbeTarget what)
      : target(std::move(what)), timer(io), limit(io), resolver(io), socket(io) {}

  const config::ProbeTarget target;
  Timer timer;  // the pause between probes
  Timer limit;  // of one probe
  Resolver resolver;
  backends::Socket socket;
  std::uint64_t serial = 0;
  bool gone = false, late = false;
  bool no_socket = false;  // we could not ask: says nothing about the server
  std::string said;        // the last trouble that was logged

  void close() {
    ErrorCode ignored;
    socket.close(ignored);
  }
  void say(const std::string& trouble) {
    if (trouble == std::exchange(said, trouble)) return;
    if (trouble.empty()) return spdlog::info("backend {}: its probes are answered again", target.name);
    spdlog::warn("backend {}: a probe was missed: {}", target.name, trouble);
  }
  void interrupt() {
    resolver.cancel();
    close();
  }
  void stop() {
    gone = true;
    timer.cancel();
    limit.cancel();
    interrupt();
  }

  AsioTask<Tcp::resolver::results_type> resolve();
  AsioTask<std::string> ask();
  static AsioTask<void> watch(std::shared_ptr<Probe> probe, Time at, std::uint64_t serial);
  static AsioTask<void> run(std::shared_ptr<Shared> shared, std::shared_ptr<Probe> probe);
};

AsioTask<Tcp::resolver::results_type> Prober::Probe::resolve() {
  ErrorCode not_numeric;
  const auto address = asio::ip::make_address(target.host, not_numeric);
  const std::string port = std::to_string(target.port);
  if (!not_numeric) {  // the resolver would start a thread for it
    co_return Tcp::resolver::results_type::create(Tcp::endpoint(address, target.port), target.host, port);
  }
  auto [error, found] = co_await resolver.async_resolve(target.host, port, no_throw);
  if (error) found = {};
  co_return found;
}

// One GET on a connection of its own. `watch` closes the socket when time is up, which ends whatever waits here.
AsioTask<std::string> Prober::Probe::ask() {
  const auto where = co_await resolve();
  if (where.empty()) co_return "the name " + target.host + " is not found";
  if (gone || late) co_return "interrupted";
  auto [connect_error, endpoint] = co_await asio::async_connect(socket, where, no_throw);
  if (connect_error) {
    no_socket = backends::is_shortage(connect_error.value());
    co_return connect_error.message();
  }
  if (!target.tls) co_return co_await converse(socket, target);
  const auto stream = std::make_unique<TlsStream>(socket, target.tls);
  auto [handshake_error] = co_await stream->stream.async_handshake(asio::ssl::stream_base::client, no_throw);
  if (handshake_error) co_return "TLS: " + handshake_error.message();
  co_return co_await converse(stream->stream, target);
}

AsioTask<void> Prober::Probe::watch(std::shared_ptr<Probe> probe, Time at, std::uint64_t serial) {
  if (probe->gone || probe->serial != serial) co_return;  // over before this began
  probe->limit.expires_at(at);
  auto [stopped] = co_await probe->limit.async_wait(no_throw);
  if (stopped || probe->serial != serial) co_return;
  probe->late = true;
  probe->interrupt();
}

AsioTask<void> Prober::Probe::run(std::shared_ptr<Shared> shared, std::shared_ptr<Probe> probe) {
  const auto id = static_cast<std::uint64_t>(policies::index(probe->target.endpoint));
  const auto jitter = [&] { return unit(draw(shared->seed, id, probe->serial)); };
  const auto interval = static_cast<double>(probe->target.probe.interval.count());
  // Soon after the start, but not all in the same instant.
  Nanos pause(static_cast<std::int64_t>(interval * 0.2 * jitter()));
  while (!probe->gone) {
    probe->timer.expires_after(pause);
    auto [stopped] = co_await probe->timer.async_wait(no_throw);
    if (stopped || probe->gone) co_return;
    ++probe->serial;
    probe->late = probe->no_socket = false;
    const Time started = std::chrono::steady_clock::now();
    const Time until = after(started, probe->target.probe.timeout);
    asio::co_spawn(probe->timer.get_executor(), watch(probe, until, probe->serial), asio::detached);
    std::string trouble = co_await probe->ask();
    ++probe->serial;
    probe->limit.cancel();
    probe->close();
    if (probe->gone) co_return;
    if (probe->late) trouble = "no answer within its time limit";
    if (!probe->no_socket) {
      probe->say(trouble);
      shared->report(probe->target.endpoint, trouble.empty());
    }
    pause = Nanos(static_cast<std::int64_t>(interval * (0.8 + 0.4 * jitter())));
  }
}

Prober::Prober(asio::io_context& io, std::uint64_t seed, Report report)
    : io_(io), shared_(std::make_shared<Shared>(Shared{seed, std::move(report)})) {}

Prober::~Prober() { stop(); }

void Prober::set_targets(const std::vector<config::ProbeTarget>& targets) {
  std::vector<std::shared_ptr<Probe>> next;
  for (const config::ProbeTarget& target : targets) {
    const auto kept = std::find_if(probes_.begin(), probes_.end(),
                                   [&](const auto& probe) { return probe && same_place(probe->target, target); });
    if (kept != probes_.end()) {
      next.push_back(std::move(*kept));
      continue;
    }
    next.push_back(std::make_shared<Probe>(io_, target));
    asio::co_spawn(io_.get_executor(), Probe::run(shared_, next.back()), asio::detached);
  }
  for (const auto& probe : probes_) {
    if (probe) probe->stop();
  }
  probes_ = std::move(next);
}

void Prober::stop() { set_targets({}); }

}  // namespace headgate::gateway
