// A model server on 127.0.0.1 that does exactly what its script says, and writes down what it saw. Every connection has
// a thread of its own with a plain socket; hundreds of connections are fine.
//
// For each whole request (head and body read) the script is called with an Exchange: the request and a handle to the
// connection. When it returns without closing, the connection is kept for the next request. GET /health is answered by
// a script of its own and counted apart (probes()), never among the arrivals.
//
//   ScriptedUpstream upstream([](Exchange& x) {
//     x.write(stream_head());                       // each write is one send
//     if (!x.wait(200ms)) return;                   // false at once when the peer goes away
//     x.write(chunk("data: {...}\n\n"));
//     x.reset();
//   });
//   upstream.set_script(good_answer());             // answers.hpp; for requests that arrive from now on
//   EXPECT_EQ(upstream.arrivals().size(), 1u);
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/http_text.hpp"
#include "support/socket.hpp"

namespace headgate::support {

struct Arrival {
  std::size_t number = 0;         // 0 for the first request, counted over all connections
  std::size_t connection = 0;     // 0 for the first connection
  std::size_t on_connection = 0;  // 0 for the first request of its connection
  Time at{};                      // the request was whole
  Head head;
  std::string body;  // decoded
  std::string raw;   // as received
  std::string method() const { return head.word(0); }
  std::string target() const { return head.word(1); }
  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
};

// The peer ended a connection.
struct Closing {
  std::size_t connection = 0;
  Time at{};
  bool during_request = false;  // while a script was running
  std::size_t arrival = 0;      // then: whose
};

struct Written {
  std::size_t arrival = 0;
  Time at{};  // just before the send
  std::string bytes;
};

class ScriptedUpstream;

// One request in the hands of its script.
class Exchange {
 public:
  const Arrival& arrival() const { return arrival_; }

  // One send of these bytes. False once the peer is gone; the script should then return.
  bool write(std::string_view bytes);
  // The last bytes of the answer: the request stops counting as open before they are sent, so that a peer which starts
  // another request the moment it has them is not seen with one too many.
  bool write_last(std::string_view bytes);
  // Each is true when what was waited for happened, and false at once when the peer ended the connection or the
  // upstream is being stopped.
  bool wait(Nanos span) { return wait_until(after(now(), span)); }
  bool wait_until(Time when);
  bool wait_for(Event& event, Nanos within = 60s);
  // Says nothing until the peer ends the connection; true if it did in time.
  bool wait_until_gone(Nanos within = 60s);

  void close();
  void reset();
  bool gone() const { return gone_; }

 private:
  friend class ScriptedUpstream;
  enum class Woke : std::uint8_t { time, event, gone };
  Exchange(ScriptedUpstream& owner, Socket& socket, Arrival arrival)
      : owner_(owner), socket_(socket), arrival_(std::move(arrival)) {}
  Woke sleep(Time until, const Event* event);
  void note_gone();

  ScriptedUpstream& owner_;
  Socket& socket_;
  Arrival arrival_;
  bool gone_ = false, closed_here_ = false;
  bool answered_ = false;  // guarded by the owner's mutex, as is the descriptor of a socket that is not answered yet
};

using Script = std::function<void(Exchange&)>;

class ScriptedUpstream {
 public:
  // Port 0: any free one. A port given is for a server that comes back where another one was.
  explicit ScriptedUpstream(Script script, std::uint16_t port = 0);
  ~ScriptedUpstream();  // ends every wait and connection
  ScriptedUpstream(const ScriptedUpstream&) = delete;
  ScriptedUpstream& operator=(const ScriptedUpstream&) = delete;

  std::uint16_t port() const { return port_; }
  std::string authority() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string url() const { return "http://" + authority(); }

  void set_script(Script script);
  void set_health(Script script);                             // default: 200 at once
  void set_interim(std::string bytes);                        // sent at the sight of a head whose body is still to come
  void set_idle_limit(Nanos limit, bool with_reset = false);  // ends connections that wait this long for a request

  std::vector<Arrival> arrivals() const;
  std::size_t arrival_count() const;
  std::vector<Closing> closings() const;
  std::vector<Closing> abandoned() const;  // closings during a request
  std::vector<Written> written() const;
  std::vector<Time> probes() const;
  std::size_t connection_count() const;  // ever accepted
  std::size_t connected_max() const;     // at once, when one was accepted; those that the peer has ended do not count
  std::size_t open_now() const;          // requests with a running script
  std::size_t open_max() const;
  // Waits until that many requests arrived in all.
  bool await_arrivals(std::size_t count, Nanos within = 10s) const;

 private:
  friend class Exchange;
  struct Connection {
    Socket socket;
    std::size_t number = 0;
    std::string unread;
    std::thread thread;
  };
  void accept_all();
  void serve(Connection& connection);
  bool read_request(Connection& connection, Arrival& into);
  bool run(Connection& connection, Arrival arrival);
  std::size_t count_open() const;       // with the mutex held
  std::size_t count_connected() const;  // likewise
  void end(Connection& connection, bool with_reset = false);

  Socket listener_;
  std::uint16_t port_;
  Event stop_;
  mutable std::mutex mutex_;  // guards everything below
  Script script_, health_;
  std::string interim_;
  Nanos idle_limit_ = Nanos::max();
  bool idle_reset_ = false;
  std::list<Connection> connections_;
  std::vector<Arrival> arrivals_;
  std::vector<Closing> closings_;
  std::vector<Written> written_;
  std::vector<Time> probes_;
  std::vector<Exchange*> running_;
  std::size_t open_max_ = 0, connected_max_ = 0;
  std::thread acceptor_;
};

}  // namespace headgate::support
