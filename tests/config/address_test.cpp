#include "config/address.hpp"

#include <gtest/gtest.h>

namespace headgate::config {
namespace {

TEST(ListenAddress, ReadsNumericAddressesWithAPort) {
  struct Row {
    const char* text;
    HostPort at;
  };
  const Row rows[] = {{"127.0.0.1:8080", {"127.0.0.1", 8080}},
                      {"0.0.0.0:0", {"0.0.0.0", 0}},
                      {"[::1]:65535", {"::1", 65535}},
                      {"[::]:80", {"::", 80}}};
  for (const Row& row : rows) {
    const auto parsed = parse_listen(row.text);
    ASSERT_TRUE(parsed) << row.text << ": " << parsed.problem;
    EXPECT_EQ(*parsed, row.at) << row.text;
  }
}

TEST(ListenAddress, RefusesTheRest) {
  for (const char* text : {"", "8080", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                           "127.0.0.1:8o", "127.1:80", "256.0.0.1:80", "localhost:8080", "::1:80", "[::1]", "[::1]80",
                           "[::1:80", "[127.0.0.1]:80", "http://127.0.0.1:80", "127.0.0.1:80 "}) {
    const auto parsed = parse_listen(text);
    EXPECT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.problem.rfind("must ", 0), 0u) << text << ": " << parsed.problem;
  }
  EXPECT_NE(parse_listen("localhost:80").problem.find("127.0.0.1"), std::string::npos);
}

TEST(BackendUrl, ReadsHostAndPort) {
  struct Row {
    const char* text;
    HostPort at;
    const char *authority, *host_port;
  };
  const Row rows[] = {{"http://127.0.0.1:9001", {"127.0.0.1", 9001}, "127.0.0.1:9001", "127.0.0.1:9001"},
                      {"http://GPU-1.Local:9001/", {"gpu-1.local", 9001}, "gpu-1.local:9001", "gpu-1.local:9001"},
                      {"http://model_server", {"model_server", 80}, "model_server", "model_server:80"},
                      {"http://[::1]:9001", {"::1", 9001}, "[::1]:9001", "[::1]:9001"},
                      {"http://[::1]", {"::1", 80}, "[::1]", "[::1]:80"},
                      {"http://h:443", {"h", 443}, "h:443", "h:443"},
                      {"https://H", {"h", 443, true}, "h", "https://h:443"},
                      {"https://[::1]:80", {"::1", 80, true}, "[::1]:80", "https://[::1]:80"}};
  for (const Row& row : rows) {
    const auto parsed = parse_backend_url(row.text);
    ASSERT_TRUE(parsed) << row.text << ": " << parsed.problem;
    EXPECT_EQ(*parsed, row.at) << row.text;
    EXPECT_EQ(authority(*parsed), row.authority);
    EXPECT_EQ(host_port(*parsed), row.host_port);
  }
}

TEST(BackendUrl, RefusesTheRest) {
  for (const char* text : {"",
                           "127.0.0.1:9001",
                           "https://",
                           "ftp://host:443",
                           "ftp://host",
                           "http://",
                           "http:///",
                           "http://host:0",
                           "http://host:65536",
                           "http://host:",
                           "http://host:9001/v1",
                           "http://host?x",
                           "http://host#x",
                           "http://user:pass@host",
                           "http://ho st",
                           "http://300.0.0.1",
                           "http://1.2.3",
                           "http://[::1",
                           "http://[zz]",
                           "http://-host",
                           "http://host:9001//"}) {
    const auto parsed = parse_backend_url(text);
    EXPECT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.problem.rfind("must ", 0), 0u) << text << ": " << parsed.problem;
  }
}

TEST(Loopback, IsWhatOnlyThisMachineReaches) {
  for (const char* address : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}) EXPECT_TRUE(is_loopback(address));
  for (const char* address :
       {"0.0.0.0", "10.0.0.1", "128.0.0.1", "::", "fe80::1", "::ffff:10.0.0.1", "localhost", ""}) {
    EXPECT_FALSE(is_loopback(address)) << address;
  }
}

}  // namespace
}  // namespace headgate::config
