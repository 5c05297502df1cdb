#include "config/network.hpp"

#include <gtest/gtest.h>

namespace headgate::config {
namespace {

using backends::IpAddress;

TEST(Network, HoldsTheAddressesOfItsPrefix) {
  struct Row {
    const char *network, *inside, *outside;
  };
  const Row table[] = {
      {"10.0.0.0/8", "10.255.255.255", "11.0.0.0"},
      {"192.168.4.0/22", "192.168.7.255", "192.168.8.0"},
      {"127.0.0.1", "127.0.0.1", "127.0.0.2"},
      {"0.0.0.0/0", "255.1.2.3", "::1"},
      {"2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"},
      {"::1", "::1", "::2"},
      {"::/0", "1.2.3.4", ""},
      {"10.0.0.0/8", "::ffff:10.1.2.3", "::10.1.2.3"},
  };
  for (const Row& row : table) {
    const auto network = parse_network(row.network);
    ASSERT_TRUE(network) << row.network << network.problem;
    EXPECT_TRUE(network->contains(*IpAddress::parse(row.inside))) << row.network << " " << row.inside;
    const auto outside = IpAddress::parse(row.outside);
    if (outside) {
      EXPECT_FALSE(network->contains(*outside)) << row.network << " " << row.outside;
    }
  }
}

TEST(Network, SaysWhatWouldBeRight) {
  for (const char* bad :
       {"", "10.0.0.0/", "10.0.0.0/33", "10.0.0/8", "::/129", "host", "10.0.0.0/8/8", "10.0.0.0/-1", "[::1]"}) {
    EXPECT_EQ(parse_network(bad).problem,
              "must be an address or a network, such as \"10.0.0.0/8\" or \"2001:db8::/32\"")
        << bad;
  }
  EXPECT_EQ(parse_network("10.0.0.1/8").problem, "has bits set behind its /8: must be the network's first address");
  EXPECT_EQ(parse_network("2001:db8::1/64").problem,
            "has bits set behind its /64: must be the network's first address");
}

TEST(IpAddressText, IsReadAndWrittenAlike) {
  for (const char* text : {"1.2.3.4", "::1", "2001:db8::5", "255.255.255.255"})
    EXPECT_EQ(IpAddress::parse(text)->text(), text);
  EXPECT_EQ(IpAddress::parse("::ffff:1.2.3.4")->text(), "1.2.3.4");
  for (const char* bad :
       {"", "1.2.3", "1.2.3.4.5", "::g", "1.2.3.4:80", "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000"}) {
    EXPECT_FALSE(IpAddress::parse(bad)) << bad;
  }
  EXPECT_EQ(IpAddress::parse("2001:db8::1")->subscriber(), IpAddress::parse("2001:db8::ffff:1")->subscriber());
  EXPECT_NE(IpAddress::parse("2001:db8:0:1::")->subscriber(), IpAddress::parse("2001:db8::1")->subscriber());
  EXPECT_NE(IpAddress::parse("1.2.3.4")->subscriber(), IpAddress::parse("1.2.3.5")->subscriber());
}

}  // namespace
}  // namespace headgate::config
