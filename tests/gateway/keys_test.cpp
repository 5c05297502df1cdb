#include "gateway/keys.hpp"

#include <gtest/gtest.h>

#include "gateway/catalogs.hpp"

namespace headgate::gateway {
namespace {

using Verdict = Caller::Verdict;

class Keys : public testing::Test {
 protected:
  Keys() { use(two_pools()); }

  void use(config::Options options) { catalog_ = config::make_catalog(std::move(options), ids_, ++version_); }

  Caller identify(std::string headers) {
    text_ = "GET / HTTP/1.1\r\nHost: h\r\n" + headers + "\r\n";
    reader_.reset();
    EXPECT_EQ(reader_.request(text_, head_), wire::Read::complete);
    return ring_.identify(head_.fields, *catalog_, memo_);
  }
  policies::RouteId route(const char* name) { return catalog_->routes.find(name)->second.id; }

  config::IdBook ids_;
  std::uint64_t version_ = 0;
  std::shared_ptr<const config::Catalog> catalog_;
  KeyRing ring_;
  KeyMemo memo_;
  std::string text_;
  wire::HeadReader reader_;
  wire::RequestHead head_;
};

TEST_F(Keys, ReadsEitherHeader) {
  const struct {
    const char* headers;
    Verdict verdict;
    const char* name;
  } table[] = {
      {"Authorization: Bearer sk-all\r\n", Verdict::known, "all"},
      {"authorization: bEaReR  sk-all\r\n", Verdict::known, "all"},
      {"x-api-key: sk-one\r\n", Verdict::known, "one"},
      {"Authorization: Bearer sk-one\r\nX-Api-Key: sk-one\r\n", Verdict::known, "one"},
      {"x-api-key: sk-one\r\nx-api-key: sk-one\r\n", Verdict::known, "one"},
      {"", Verdict::wrong_key, ""},
      {"Authorization: Bearer sk-al\r\n", Verdict::wrong_key, ""},
      {"Authorization: Bearer sk-alls\r\n", Verdict::wrong_key, ""},
      {"Authorization: Bearer\r\n", Verdict::wrong_key, ""},
      {"Authorization: Bearer \r\n", Verdict::wrong_key, ""},
      {"Authorization: Basic sk-all\r\n", Verdict::wrong_key, ""},
      {"x-api-key:\r\n", Verdict::wrong_key, ""},
      {"Authorization: Bearer sk-all\r\nx-api-key: sk-one\r\n", Verdict::bad_header, ""},
      {"Authorization: Bearer sk-all\r\nAuthorization: Bearer sk-all\r\n", Verdict::bad_header, ""},
      {"x-api-key: sk-all\r\nx-api-key: sk-one\r\n", Verdict::bad_header, ""},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.headers);
    memo_ = {};
    const Caller caller = identify(row.headers);
    EXPECT_EQ(caller.verdict, row.verdict);
    EXPECT_EQ(caller.identity.name(), row.name);
    EXPECT_EQ(caller.ok(), row.verdict == Verdict::known);
  }
}

TEST_F(Keys, RefusesAsTheContractSays) {
  EXPECT_EQ(identify("").refusal().refusal, Refusal::invalid_api_key);
  const RefusalAnswer twice = identify("Authorization: Bearer a\r\nAuthorization: Bearer a\r\n").refusal();
  EXPECT_EQ(twice.refusal, Refusal::invalid_header);
  EXPECT_EQ(twice.param, "authorization");
  EXPECT_FALSE(twice.detail.empty());
}

TEST_F(Keys, OpensTheRoutesOfTheKeyAlone) {
  const Identity all = identify("x-api-key: sk-all\r\n").identity;
  EXPECT_TRUE(all.may_use(route("small")));
  EXPECT_TRUE(all.may_use(route("big")));
  const Identity one = identify("x-api-key: sk-one\r\n").identity;
  EXPECT_FALSE(one.may_use(route("small")));
  EXPECT_TRUE(one.may_use(route("big")));
}

TEST_F(Keys, TakesACallerWithoutAKeyOnlyWhereThatIsAllowed) {
  auto options = two_pools();
  options.listen.allow_anonymous = true;
  use(options);
  const Caller nobody = identify("");
  EXPECT_EQ(nobody.verdict, Verdict::anonymous);
  EXPECT_TRUE(nobody.identity.anonymous());
  EXPECT_TRUE(nobody.identity.may_use(route("big")));
  EXPECT_EQ(identify("x-api-key: sk-one\r\n").identity.name(), "one");
  EXPECT_EQ(identify("x-api-key: wrong\r\n").verdict, Verdict::wrong_key) << "a mistyped key is not made anonymous";
  EXPECT_EQ(identify("x-api-key: a\r\nx-api-key: b\r\n").verdict, Verdict::bad_header);
  options.keys.clear();
  use(options);
  EXPECT_EQ(identify("x-api-key: whatever\r\n").verdict, Verdict::anonymous) << "there is no key to compare with";
}

TEST_F(Keys, HashesTheSameTextOnAConnectionOnce) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(identify("Authorization: Bearer sk-all\r\n").ok());
  EXPECT_EQ(ring_.hashed(), 1u);
  EXPECT_EQ(identify("Authorization: Bearer sk-one\r\n").identity.name(), "one");
  EXPECT_EQ(ring_.hashed(), 2u);
  EXPECT_FALSE(identify("Authorization: Bearer sk-onE\r\n").ok());
  EXPECT_EQ(identify("x-api-key: sk-one\r\n").identity.name(), "one") << "still remembered";
  EXPECT_EQ(ring_.hashed(), 3u);
}

TEST_F(Keys, ForgetsAKeyThatAReloadTookAway) {
  EXPECT_EQ(identify("x-api-key: sk-all\r\n").identity.name(), "all");
  auto options = two_pools();
  options.keys.erase(options.keys.begin());
  use(options);
  EXPECT_FALSE(identify("x-api-key: sk-all\r\n").ok());
  EXPECT_EQ(identify("x-api-key: sk-one\r\n").identity.name(), "one");
}

TEST_F(Keys, AcceptsADigestInPlaceOfAKey) {
  auto options = two_pools();
  // printf sk-hashed | sha256sum
  options.keys = {{"hashed", "c291001835042e213221b2f9fca79c9c91d08813d599b717bc695a268edb2ea6", {}, {}}};
  use(options);
  EXPECT_EQ(identify("x-api-key: sk-hashed\r\n").identity.name(), "hashed");
}

TEST_F(Keys, DoesNotRememberEndlessKeys) {
  auto options = two_pools();
  const std::string long_key(4000, 'k');
  options.keys = {{"long", "", config::Secret(long_key), {}}};
  use(options);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(identify("x-api-key: " + long_key + "\r\n").ok());
  EXPECT_EQ(ring_.hashed(), 3u);
}

}  // namespace
}  // namespace headgate::gateway
