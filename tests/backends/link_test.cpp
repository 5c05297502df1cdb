// Links, the deadline wheel and the pool of idle connections over real sockets on one io_context, run by the test.
#include "backends/io/link.hpp"

#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "backends/io/body_reader.hpp"
#include "backends/io/wheel.hpp"
#include "backends/upstream_pool.hpp"

namespace headgate::backends {
namespace {

using asio::ip::tcp;

// A link and the plain socket at its other end.
struct Pair {
  Pair() {
    asio::basic_socket_acceptor<tcp, Executor> acceptor(io.get_executor(), tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    peer.connect(acceptor.local_endpoint());
    link = Link::adopt(acceptor.accept(), pool);
  }
  ~Pair() {  // pending operations of retired links end here
    link.reset();
    io.restart();
    io.run();
  }
  void run_until(const std::function<bool()>& done) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done() && std::chrono::steady_clock::now() < give_up) {
      io.restart();  // it stops whenever nothing is pending
      io.run_one_for(std::chrono::milliseconds(100));
    }
    ASSERT_TRUE(done());
  }
  void say(std::string_view text) { asio::write(peer, asio::buffer(text)); }
  void read(std::string_view text) {
    const std::uint64_t before = link->bytes_read();
    link->arm();
    say(text);
    run_until([&] { return link->bytes_read() == before + text.size(); });
  }

  asio::io_context io{1};
  BufferPool pool;
  Socket peer{io.get_executor()};
  LinkPtr link;
};

TEST(Link, PutsBytesBehindWhatIsLeftWhenTheBufferWasConsumedUnderAPendingRead) {
  Pair pair;
  pair.read("first");
  pair.link->arm();  // pending, behind "first"
  pair.link->in().consume(5);
  pair.link->in().clear();  // the place it points to is no longer the buffer's end
  pair.say("second");
  pair.run_until([&] { return pair.link->bytes_read() == 11; });
  EXPECT_EQ(pair.link->in().view(), "second");
}

TEST(Link, PutsBytesBehindWhatIsLeftWhenBytesWereErasedUnderAPendingRead) {
  Pair pair;
  pair.read("keep-drop-keep");
  pair.link->arm();
  pair.link->in().erase(4, 9);
  pair.say("!");
  pair.run_until([&] { return pair.link->bytes_read() == 15; });
  EXPECT_EQ(pair.link->in().view(), "keep-keep!");
}

TEST(Link, GrowsUnderAPendingReadAndLosesNothing) {
  Pair pair;
  pair.read("head");
  pair.link->arm();
  pair.link->reserve(200'000);
  EXPECT_GE(pair.link->in().room(), 200'000u);
  pair.link->reserve(400'000);
  pair.say("tail");
  pair.run_until([&] { return pair.link->bytes_read() == 8; });
  EXPECT_EQ(pair.link->in().view(), "headtail");
}

TEST(Link, TellsACleanEndFromAReset) {
  Pair clean;
  clean.link->arm();
  clean.peer.close();
  clean.run_until([&] { return clean.link->ended(); });
  EXPECT_TRUE(clean.link->clean_end());

  Pair reset;
  reset.link->arm();
  reset.peer.set_option(asio::socket_base::linger(true, 0));
  reset.peer.close();
  reset.run_until([&] { return reset.link->ended(); });
  EXPECT_FALSE(reset.link->clean_end());
}

TEST(Link, MayBeDestroyedWithAReadPending) {
  Pair pair;
  pair.link->arm();
  pair.link.reset();
  ErrorCode ended;
  char byte = 0;
  asio::read(pair.peer, asio::buffer(&byte, 1), ended);  // the peer sees the close at once
  EXPECT_TRUE(ended);
  pair.io.run();  // the pending operation ends and frees the memory (checked under ASan)
}

TEST(BodyReader, TakesChunkFramingOffInPlaceHoweverItIsCut) {
  constexpr std::string_view raw = "5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\nT: 1\r\n\r\nNEXT";
  for (std::size_t step = 1; step <= raw.size(); ++step) {
    BufferPool pool;
    Buffer buffer(pool);
    BodyReader body;
    body.start(wire::Framing::chunked, 0, 0);
    buffer.reserve(raw.size());
    for (std::size_t at = 0; at < raw.size(); at += step) {
      const std::string_view piece = raw.substr(at, step);
      std::memcpy(buffer.tail(), piece.data(), piece.size());
      buffer.commit(piece.size());
      body.pull(buffer);
    }
    EXPECT_TRUE(body.done());
    EXPECT_EQ(buffer.view(), "hello, worldNEXT") << "step " << step;
    EXPECT_EQ(body.data(buffer), "hello, world");
  }
}

TEST(Wheel, RingsEachAlarmOnceNeverEarlyInOrderOfTheirTimes) {
  asio::io_context io(1);
  Wheel wheel(io);
  std::vector<int> rung;
  const Time start = std::chrono::steady_clock::now();
  bool early = false;
  const auto ring = [&](int id, int ms) {
    return [&, id, ms] {
      early = early || std::chrono::steady_clock::now() < start + std::chrono::milliseconds(ms);
      rung.push_back(id);
    };
  };
  Alarm first(wheel, ring(1, 20)), second(wheel, ring(2, 60)), moved(wheel, ring(3, 100)), dropped(wheel, ring(4, 30));
  first.set(start + std::chrono::milliseconds(20));
  second.set(start + std::chrono::milliseconds(60));
  moved.set(start + std::chrono::milliseconds(40));
  moved.set(start + std::chrono::milliseconds(100));  // later than before: a store
  dropped.set(start + std::chrono::milliseconds(30));
  dropped.cancel();
  io.run();  // ends when nothing is set any more
  EXPECT_EQ(rung, (std::vector<int>{1, 2, 3}));
  EXPECT_FALSE(early);
}

TEST(Wheel, AnAlarmMaySetOthersAndItselfWhileRinging) {
  asio::io_context io(1);
  Wheel wheel(io);
  int count = 0;
  Alarm* self = nullptr;
  Alarm again(wheel, [&] {
    if (++count < 3) self->set(std::chrono::steady_clock::now() + std::chrono::milliseconds(9));
  });
  self = &again;
  again.set(std::chrono::steady_clock::now());
  io.run();
  EXPECT_EQ(count, 3);
}

TEST(UpstreamPool, HandsOutTheLastGivenAndNeverADeadOne) {
  Pair a, b;
  Wheel wheel(a.io);
  UpstreamPool pool(wheel, {});
  Link* const first = a.link.get();
  const Time now = std::chrono::steady_clock::now();
  pool.give(7, std::move(a.link), now);
  EXPECT_EQ(pool.take(8), nullptr);
  EXPECT_EQ(pool.idle(), 1u);
  LinkPtr got = pool.take(7);
  EXPECT_EQ(got.get(), first);
  EXPECT_EQ(pool.take(7), nullptr);

  pool.give(7, std::move(got), now);
  a.say("nobody asked");  // bytes on an idle connection: never handed out
  a.run_until([&] { return first->bytes_read() > 0; });
  EXPECT_EQ(pool.take(7), nullptr);
  EXPECT_EQ(pool.idle(), 0u);
}

TEST(UpstreamPool, KeepsAtMostItsNumberAndDropsTheOldest) {
  Pair a, b, c;
  Wheel wheel(a.io);
  UpstreamPool pool(wheel, {.idle_max = 2});
  Link *const second = b.link.get(), *const third = c.link.get();
  const Time now = std::chrono::steady_clock::now();
  pool.give(0, std::move(a.link), now);
  pool.give(0, std::move(b.link), now);
  pool.give(0, std::move(c.link), now);
  EXPECT_EQ(pool.idle(), 2u);
  const LinkPtr last = pool.take(0), before = pool.take(0);
  EXPECT_EQ(last.get(), third);
  EXPECT_EQ(before.get(), second);
}

}  // namespace
}  // namespace headgate::backends
