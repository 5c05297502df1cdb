#include "policies/outcome.hpp"

#include <gtest/gtest.h>

namespace headgate::policies {
namespace {

TEST(Outcome, StatusTellsWhoseFaultItIs) {
  struct Row {
    Fault fault;
    std::vector<std::uint16_t> statuses;
  };
  const Row rows[] = {{Fault::none, {200}},
                      {Fault::callers, {400, 404, 405, 408, 409, 413, 415, 418, 422, 499}},
                      {Fault::ours, {401, 402, 403, 407}},
                      {Fault::load, {429, 503, 529}},
                      {Fault::hard, {101, 201, 202, 204, 206, 301, 304, 307, 500, 501, 502, 504, 520, 599}}};
  for (const Row& row : rows) {
    for (const std::uint16_t status : row.statuses) EXPECT_EQ(fault_of_status(status, false), row.fault) << status;
  }
}

TEST(Outcome, CallersOwnCredentialsAreTheCallersFault) {
  EXPECT_EQ(fault_of_status(401, true), Fault::callers);
  EXPECT_EQ(fault_of_status(403, true), Fault::callers);
  EXPECT_EQ(fault_of_status(402, true), Fault::ours);
  EXPECT_EQ(fault_of_status(407, true), Fault::ours);
}

TEST(Outcome, EveryEndHasAFault) {
  for (const End end : {End::connect, End::unsent, End::sent_no_answer, End::malformed, End::truncated,
                        End::first_byte_late, End::first_token_late, End::stalled, End::in_band_error}) {
    EXPECT_EQ(fault_of({.end = end}), Fault::hard) << static_cast<int>(end);
    EXPECT_FALSE(succeeded({.end = end}));
  }
  EXPECT_EQ(fault_of({.end = End::in_band_error, .overloaded = true}), Fault::load);
  EXPECT_EQ(fault_of({.end = End::status, .status = 401}), Fault::ours);
  EXPECT_EQ(fault_of({.end = End::status, .status = 429}), Fault::load);
  EXPECT_EQ(fault_of({.end = End::status, .status = 500}), Fault::hard);
  EXPECT_EQ(fault_of({.end = End::status, .status = 302}), Fault::hard);
}

TEST(Outcome, ACallOffIsNeitherSuccessNorFailure) {
  for (const End end : {End::out_of_time, End::cancelled, End::no_socket}) {
    EXPECT_EQ(fault_of({.end = end}), Fault::none);
    EXPECT_FALSE(succeeded({.end = end}));
  }
  EXPECT_TRUE(succeeded({.end = End::ok, .status = 200}));
  EXPECT_TRUE(succeeded({.end = End::ok}));
  EXPECT_FALSE(succeeded({.end = End::ok, .status = 400}));
  EXPECT_EQ(fault_of({.end = End::ok, .status = 422}), Fault::callers);
}

TEST(Outcome, EveryEndHasAName) {
  EXPECT_EQ(name_of(End::ok), "ok");
  EXPECT_EQ(name_of(End::status), "status");
  EXPECT_EQ(name_of(End::truncated), "truncated");
  EXPECT_EQ(name_of(End::out_of_time), "out_of_time");
  EXPECT_EQ(name_of(End::no_socket), "no_socket");
}

}  // namespace
}  // namespace headgate::policies
