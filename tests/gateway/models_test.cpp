#include "gateway/models.hpp"

#include <gtest/gtest.h>

#include "gateway/catalogs.hpp"

namespace headgate::gateway {
namespace {

TEST(Models, ListsTheRoutesOfTheKeyByName) {
  config::IdBook ids;
  const auto catalog = config::make_catalog(two_pools(), ids, 1);
  std::string all, one;
  append_model_list(all, *catalog, Identity(&catalog->keys[0]));
  append_model_list(one, *catalog, Identity(&catalog->keys[1]));
  EXPECT_EQ(all, R"({"object":"list","data":[{"id":"big","object":"model","created":0,"owned_by":"headgate"},)"
                 R"({"id":"small","object":"model","created":0,"owned_by":"headgate"}]})");
  EXPECT_EQ(one, R"({"object":"list","data":[{"id":"big","object":"model","created":0,"owned_by":"headgate"}]})");
}

TEST(Models, ShowsOneOnlyToAKeyThatMayUseIt) {
  config::IdBook ids;
  const auto catalog = config::make_catalog(two_pools(), ids, 1);
  const Identity one(&catalog->keys[1]);
  std::string out;
  EXPECT_TRUE(append_model(out, *catalog, one, "big"));
  EXPECT_EQ(out, R"({"id":"big","object":"model","created":0,"owned_by":"headgate"})");
  out.clear();
  EXPECT_FALSE(append_model(out, *catalog, one, "small"));
  EXPECT_FALSE(append_model(out, *catalog, one, "none"));
  EXPECT_EQ(out, "");
}

TEST(Models, FindsTheNameInATarget) {
  EXPECT_EQ(model_in_target("/v1/models/big"), "big");
  EXPECT_EQ(model_in_target("/v1/models/org/big-7b?x=1"), "org/big-7b");
  EXPECT_EQ(model_in_target("/v1/models/org%2Fbig%2d7b"), "org/big-7b");
  for (const char* target :
       {"/v1/models", "/v1/models/", "/v1/models/?a", "/v2/models/a", "/v1/models/a%2", "/v1/models/%zz"}) {
    EXPECT_EQ(model_in_target(target), std::nullopt) << target;
  }
}

}  // namespace
}  // namespace headgate::gateway
