// What a request may cost in system calls and allocations, counted in the real binary: at the kernel by strace, in the
// process by a library that counts allocations.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "support/answers.hpp"
#include "support/child_process.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

std::string headers() {
  return "Authorization: Bearer GW1\r\nContent-Type: application/json\r\nx-request-id: "
         "0b66a9f2-3c1e-4d0a-9a55-5a1f0a7c1f11\r\nUser-Agent: test\r\n";
}

std::string thousand_bytes(bool stream) {
  return chat_request(chat_body(stream, "m", ",\"max_tokens\":50,\"note\":\"" + std::string(900, 'w') + "\""),
                      headers());
}

// `count` requests one after the other on each of `callers` connections.
void ask(std::uint16_t port, int callers, int count, const std::string& bytes) {
  std::vector<std::jthread> threads;
  for (int n = 0; n < callers; ++n) {
    threads.emplace_back([&] {
      RawClient client(port);
      for (int i = 0; i < count; ++i) {
        const Reply reply = client.ask(bytes, 30s);
        if (reply.status != 200 || !reply.complete) {
          ADD_FAILURE() << reply.raw;
          return;
        }
      }
    });
  }
}

nlohmann::json config_for(const MockProcess& mock, int workers) {
  auto config = basic_config({});
  config["pools"]["p"]["backends"].push_back(backend_config("u1", mock.port(), 1000));
  config["pools"]["p"]["probe"]["interval"] = "1h";
  config["workers"] = workers;
  return config;
}

// System calls of a process and all its threads between begin and end.
class SystemCalls {
 public:
  explicit SystemCalls(pid_t process)
      : strace_({"-f", "-c", "-U", "calls,name", "-o", table_.path(), "-p", std::to_string(process)}, {},
                "/usr/bin/strace") {
    attached_ = eventually(10s, [&] { return strace_.output().find("attached") != std::string::npos; });
  }
  bool attached() const { return attached_; }
  std::string said() const { return strace_.output(); }

  std::map<std::string, double> end() {
    strace_.signal(SIGINT);
    strace_.exit_code(10s);
    std::map<std::string, double> calls;
    std::ifstream table(table_.path());
    for (std::string line; std::getline(table, line);) {
      std::istringstream words(line);
      double count = 0;
      std::string name;
      if (words >> count >> name) calls[name] = count;
    }
    return calls;
  }

 private:
  TextFile table_{""};
  ChildProcess strace_;
  bool attached_ = false;
};

struct Cost : testing::Test {
  void SetUp() override {
    if (product_sanitized()) GTEST_SKIP() << "sanitizers cost and hold what the product does not";
  }
};

// Stage: one connection, 500 keep-alive requests of 1 KB, one after the other: nothing can be shared between them.
TEST_F(Cost, AKeepAliveRequestIsTwoSendsAndFourReceives) {
  MockProcess mock({"--profile", "instant"});
  GatewayProcess gateway(config_for(mock, 1));
  ask(gateway.port(), 1, 50, thousand_bytes(false));
  RawClient client(gateway.port());
  ASSERT_EQ(client.ask(thousand_bytes(false)).status, 200);
  SystemCalls calls(gateway.pid());
  ASSERT_TRUE(calls.attached()) << calls.said();
  constexpr int requests = 500;
  const auto began = now();
  for (int n = 0; n < requests; ++n) ASSERT_EQ(client.ask(thousand_bytes(false)).status, 200);
  std::map<std::string, double> made = calls.end();
  const double passed_s = std::chrono::duration<double>(now() - began).count();
  std::ostringstream all;
  for (const auto& [name, count] : made) all << name << " " << count / requests << "\n";
  const auto per_request = [&](std::initializer_list<const char*> names) {
    double sum = 0;
    for (const char* name : names) sum += made[name];
    return sum / requests;
  };
  const double sends = per_request({"sendmsg", "sendto", "write", "writev"}),
               receives = per_request({"recvfrom", "recvmsg", "read", "readv"});
  EXPECT_GE(sends, 2) << all.str();    // one to the backend, one to the caller: else nothing was counted
  EXPECT_LE(sends, 2.1) << all.str();  // the access log's line is written in batches
  EXPECT_GE(receives, 2) << all.str();
  EXPECT_LE(receives, 4.1) << all.str();
  EXPECT_LE(made["epoll_ctl"], 5) << all.str();
  EXPECT_LE(made["timerfd_settime"], 5 + 15 * passed_s) << all.str();  // ten times a second, whatever comes
  RecordProperty("system_calls", all.str());
}

// Stage: two workers, 16 connections, 8,000 requests: the mutex round the Dispatcher is the one thing they share.
TEST_F(Cost, TwoWorkersSeldomWaitForEachOther) {
  MockProcess mock({"--profile", "instant"});
  GatewayProcess gateway(config_for(mock, 2));
  ask(gateway.port(), 16, 20, thousand_bytes(false));
  SystemCalls calls(gateway.pid());
  ASSERT_TRUE(calls.attached()) << calls.said();
  ask(gateway.port(), 16, 500, thousand_bytes(false));
  const std::map<std::string, double> made = calls.end();
  const auto found = made.find("futex");
  EXPECT_LT(found == made.end() ? 0 : found->second / 8, 1) << "futex calls per 1,000 requests";
}

class AllocationCount {
 public:
  AllocationCount() : file_(std::string(sizeof(std::uint64_t), '\0')) {
    const int file = ::open(file_.path().c_str(), O_RDONLY | O_CLOEXEC);
    at_ = ::mmap(nullptr, sizeof(std::uint64_t), PROT_READ, MAP_SHARED, file, 0);
    ::close(file);
  }
  ~AllocationCount() { ::munmap(at_, sizeof(std::uint64_t)); }
  Started started() const {
    return {.environment = {std::string("LD_PRELOAD=") + HEADGATE_ALLOCATIONS_LIBRARY,
                            "HEADGATE_ALLOCATIONS=" + file_.path()}};
  }
  std::uint64_t now() const { return *static_cast<const volatile std::uint64_t*>(at_); }

 private:
  TextFile file_;
  void* at_;
};

// Allocations while each of 8 connections makes `requests` requests; those of the same load before them don't count.
std::uint64_t allocations_of(const std::string& bytes, int requests) {
  MockProcess mock({"--profile", "instant"});
  const AllocationCount count;
  GatewayProcess gateway(config_for(mock, 1), count.started());
  EXPECT_GT(count.now(), 1000u) << "nothing was counted";  // a start allocates
  std::vector<std::jthread> threads;
  std::atomic<int> warm{0}, done{0};
  Event go, leave;
  for (int n = 0; n < 8; ++n) {
    threads.emplace_back([&] {
      RawClient client(gateway.port());
      for (int i = 0; i < 500; ++i) EXPECT_EQ(client.ask(bytes, 30s).status, 200);
      ++warm;
      go.wait(60s);
      for (int i = 0; i < requests; ++i) EXPECT_EQ(client.ask(bytes, 30s).status, 200);
      ++done;
      leave.wait(60s);  // the end of a connection is no request
    });
  }
  EXPECT_TRUE(eventually(60s, [&] { return warm == 8; }));
  const std::uint64_t before = count.now();
  go.set();
  EXPECT_TRUE(eventually(60s, [&] { return done == 8; }));
  const std::uint64_t after = count.now();
  leave.set();
  return after - before;
}

// What the main thread does on its clock meanwhile is a few dozen.
TEST_F(Cost, NothingIsAllocatedPerUnaryRequest) {
  EXPECT_LE(allocations_of(thousand_bytes(false), 500), 40u) << "in 4,000 requests";
}

TEST_F(Cost, NothingIsAllocatedPerStreamOrEvent) {
  EXPECT_LE(allocations_of(thousand_bytes(true), 100), 40u) << "in 800 streams";
}

TEST_F(Cost, NothingIsAllocatedPerRequestWithAnAliasAndUsageAskedFor) {
  const std::string bytes =
      chat_request(chat_body(true, "m", ",\"stream_options\":{\"include_usage\":false}"), headers());
  EXPECT_LE(allocations_of(bytes, 100), 40u) << "in 800 streams";
}

}  // namespace
}  // namespace headgate::support
