// Links, the deadline wheel and the pool of idle connections over real sockets on one Loop, run by the test.
#include "backends/io/link.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/io/body_reader.hpp"
#include "backends/io/listener.hpp"
#include "backends/io/wheel.hpp"
#include "backends/upstream_pool.hpp"

namespace headgate::backends {
namespace {

using namespace std::chrono_literals;

void run_until(Loop& loop, const std::function<bool()>& done) {
  const auto give_up = std::chrono::steady_clock::now() + 10s;
  while (!done() && std::chrono::steady_clock::now() < give_up) loop.run_once(100ms);
  ASSERT_TRUE(done());
}

// A link and the plain, blocking socket at its other end.
struct Pair {
  Pair() {
    const int listener = open_listener(*Endpoint::numeric("127.0.0.1", 0));
    peer = ::socket(AF_INET, SOCK_STREAM, 0);
    const Endpoint at = *Endpoint::numeric("127.0.0.1", port_of(listener));
    EXPECT_EQ(::connect(peer, at.address(), at.size()), 0);
    int fd = -1;
    while (fd < 0) fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
    ::close(listener);
    link = Link::adopt(loop, pool, fd);
    loop.run_once(0ms);  // the first edge: writable
  }
  ~Pair() { hang_up(); }
  void hang_up() {
    if (peer >= 0) ::close(peer);
    peer = -1;
  }
  void run_until(const std::function<bool()>& done) { backends::run_until(loop, done); }
  void say(std::string_view text) const {
    ASSERT_EQ(::send(peer, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  void read(std::string_view text) {
    const std::uint64_t before = link->bytes_read();
    link->arm();
    say(text);
    run_until([&] { return link->bytes_read() == before + text.size(); });
  }

  Loop loop;
  BufferPool pool;
  int peer = -1;
  LinkPtr link;
};

TEST(Link, PutsBytesBehindWhatIsLeft) {
  Pair pair;
  pair.read("keep-drop-keep");
  pair.link->arm();
  pair.link->in().erase(4, 9);
  pair.say("!");
  pair.run_until([&] { return pair.link->bytes_read() == 15; });
  EXPECT_EQ(pair.link->in().view(), "keep-keep!");
}

TEST(Link, GrowsWhileItWaitsAndLosesNothing) {
  Pair pair;
  pair.read("head");
  pair.link->arm();
  pair.link->in().reserve(200'000);
  pair.say("tail");
  pair.run_until([&] { return pair.link->bytes_read() == 8; });
  EXPECT_EQ(pair.link->in().view(), "headtail");
}

TEST(Link, HoldsNoMemoryWhileItWaitsWithAnEmptyBuffer) {
  Pair pair;
  pair.link->arm();
  EXPECT_EQ(pair.link->in().capacity(), 0u);
  pair.read("request");
  pair.link->in().reserve(1 << 20);
  pair.link->in().consume(7);
  pair.link->arm();
  EXPECT_EQ(pair.link->in().capacity(), 0u);
}

TEST(Link, ReadsOnWhenMoreHadComeThanItHadRoomFor) {
  Pair pair;
  const std::string text(BufferPool::block_bytes + 1000, 'x');
  pair.link->arm();
  pair.say(text);
  pair.run_until([&] { return pair.link->bytes_read() == BufferPool::block_bytes; });
  pair.link->arm();  // full: nothing can be read
  EXPECT_EQ(pair.link->bytes_read(), BufferPool::block_bytes);
  pair.link->in().reserve(2000);
  pair.link->arm();
  pair.run_until([&] { return pair.link->bytes_read() == text.size(); });
}

TEST(Link, TellsThatThePeerEndedThoughItsBytesAreUnread) {
  Pair pair;
  pair.link->arm();
  pair.say(std::string(BufferPool::block_bytes + 1000, 'x'));
  pair.run_until([&] { return pair.link->bytes_read() == BufferPool::block_bytes; });
  pair.link->arm();
  EXPECT_FALSE(pair.link->peer_ended());
  pair.hang_up();
  pair.run_until([&] { return pair.link->peer_ended(); });
  EXPECT_FALSE(pair.link->ended());
  pair.link->in().consume(BufferPool::block_bytes);
  pair.link->arm();
  EXPECT_EQ(pair.link->in().size(), 1000u);
  pair.link->arm();
  EXPECT_TRUE(pair.link->ended());
}

TEST(Link, NoticesTheEndThatCameTogetherWithTheLastBytes) {
  Pair pair;
  pair.say("last");
  pair.hang_up();
  pair.link->arm();
  pair.run_until([&] { return pair.link->bytes_read() == 4; });
  pair.run_until([&] {
    pair.link->arm();
    return pair.link->ended();
  });
  EXPECT_TRUE(pair.link->clean_end());
}

TEST(Link, WritesOnWhenTheFullSocketHasRoomAgain) {
  Pair pair;
  Waker waker;
  pair.link->owner(&waker);
  const std::string text(1 << 20, 'x');
  std::size_t written = 0, received = 0;
  std::string taken(1 << 20, ' ');
  while (written < 64 * text.size()) {
    const Piece piece(text.data(), text.size());
    const std::size_t n = pair.link->write_some({&piece, 1});
    written += n;
    if (n == text.size()) continue;
    pair.link->await_writable();
    ASSERT_TRUE(pair.link->awaiting_writable());
    while (received < written) {
      const ssize_t got = ::recv(pair.peer, taken.data(), taken.size(), 0);
      ASSERT_GT(got, 0);
      received += static_cast<std::size_t>(got);
    }
    pair.run_until([&] { return !pair.link->awaiting_writable(); });
  }
  EXPECT_FALSE(pair.link->write_failed());
}

TEST(Link, DialsAndSaysWhenNobodyListens) {
  Loop loop;
  BufferPool pool;
  const int listener = open_listener(*Endpoint::numeric("127.0.0.1", 0));
  const Endpoint at = *Endpoint::numeric("127.0.0.1", port_of(listener));
  const LinkPtr good = Link::dial(loop, pool, at);
  run_until(loop, [&] { return !good->connecting(); });
  EXPECT_TRUE(good->connected());
  ::close(listener);
  const LinkPtr bad = Link::dial(loop, pool, at);
  run_until(loop, [&] { return !bad->connecting(); });
  EXPECT_FALSE(bad->connected());
}

TEST(Link, TellsACleanEndFromAReset) {
  Pair clean;
  clean.link->arm();
  clean.hang_up();
  clean.run_until([&] { return clean.link->ended(); });
  EXPECT_TRUE(clean.link->clean_end());

  Pair reset;
  reset.link->arm();
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(reset.peer, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  reset.hang_up();
  reset.run_until([&] { return reset.link->ended(); });
  EXPECT_FALSE(reset.link->clean_end());
}

TEST(Link, MayBeDestroyedWhileTheLoopStillHasNewsOfIt) {
  Pair a;
  BufferPool pool;
  const LinkPtr other =
      Link::dial(a.loop, pool, *Endpoint::numeric("127.0.0.1", 1));  // refused: an event of the same turn
  struct Destroyer final : Loop::Watched {
    void on_ready(std::uint32_t) override { link->reset(); }
    LinkPtr* link = nullptr;
  } destroyer;
  destroyer.link = &a.link;
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  ASSERT_TRUE(a.loop.watch(fds[0], destroyer));
  ASSERT_EQ(::write(fds[1], "x", 1), 1);
  a.link->arm();
  a.say("news");
  a.loop.run_once(100ms);  // whichever comes first: nothing is touched after its end (checked under ASan)
  EXPECT_EQ(a.link, nullptr);
  a.loop.forget(destroyer);
  ::close(fds[0]);
  ::close(fds[1]);
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
  Loop loop;
  LoopWheel wheel(loop);
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
  run_until(loop, [&] { return rung.size() == 3; });
  loop.run_once(50ms);  // the dropped one stays silent
  EXPECT_EQ(rung, (std::vector<int>{1, 2, 3}));
  EXPECT_FALSE(early);
}

TEST(Wheel, AnAlarmMaySetOthersAndItselfWhileRinging) {
  Loop loop;
  LoopWheel wheel(loop);
  int count = 0;
  Alarm* self = nullptr;
  Alarm again(wheel, [&] {
    if (++count < 3) self->set(std::chrono::steady_clock::now() + std::chrono::milliseconds(9));
  });
  self = &again;
  again.set(std::chrono::steady_clock::now());
  run_until(loop, [&] { return count == 3; });
}

TEST(UpstreamPool, HandsOutTheLastGivenAndNeverADeadOne) {
  Pair a, b;
  LoopWheel wheel(a.loop);
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
  LoopWheel wheel(a.loop);
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
