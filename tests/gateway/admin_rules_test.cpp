#include "gateway/admin_rules.hpp"

#include <gtest/gtest.h>

namespace headgate::gateway {
namespace {

struct Row {
  const char* name;
  AdminRequest request;
  AdminPlace place;
  int status;  // 0: served
  const char* code = "";
};

const AdminPlace loopback{"127.0.0.1", 9090, ""};
const AdminPlace guarded{"127.0.0.1", 9090, "t0k"};
const AdminPlace on_public{"192.0.2.7", 9090, "t0k"};

AdminRequest get(std::string_view path, std::string_view host = "localhost:9090") {
  return {"GET", path, host, {}, {}, {}};
}
AdminRequest post(std::string_view path, std::string_view admin_header = "1") {
  return {"POST", path, "127.0.0.1:9090", {}, {}, admin_header};
}
AdminRequest with_token(AdminRequest request, std::string_view authorization) {
  request.authorization = authorization;
  return request;
}
AdminRequest from(std::string_view origin) {
  AdminRequest request = post("/admin/reload");
  request.origin = origin;
  return request;
}

TEST(AdminRules, ServeOrRefuse) {
  const Row table[] = {
      {"metrics", get("/metrics"), loopback, 0},
      {"state", get("/admin/state"), loopback, 0},
      {"health", get("/healthz"), loopback, 0},
      {"reload", post("/admin/reload"), loopback, 0},
      {"drain", post("/admin/drain"), loopback, 0},
      {"unknown path", get("/admin"), loopback, 404, "not_found"},
      {"the dashboard is not there yet", get("/"), loopback, 404, "not_found"},
      {"post to a page", post("/metrics"), loopback, 405, "method_not_allowed"},
      {"get of a mutation", get("/admin/reload"), loopback, 405, "method_not_allowed"},
      {"mutation from a form", post("/admin/drain", ""), loopback, 403, "admin_header_missing"},
      {"mutation with another value", post("/admin/drain", "yes"), loopback, 403, "admin_header_missing"},

      {"no token", get("/metrics"), guarded, 401, "invalid_token"},
      {"wrong token", with_token(get("/metrics"), "Bearer t0j"), guarded, 401, "invalid_token"},
      {"longer token", with_token(get("/metrics"), "Bearer t0kk"), guarded, 401, "invalid_token"},
      {"no scheme", with_token(get("/metrics"), "t0k"), guarded, 401, "invalid_token"},
      {"token", with_token(get("/metrics"), "bearer t0k"), guarded, 0},
      {"header in place of the token", post("/admin/drain"), guarded, 401, "invalid_token"},
      {"token in place of the header", with_token(post("/admin/drain", ""), "Bearer t0k"), guarded, 0},
      {"health needs none", get("/healthz"), guarded, 0},
      {"readiness needs none", get("/readyz"), guarded, 0},

      {"host by address", get("/metrics", "127.0.0.1:9090"), loopback, 0},
      {"host by another loopback address", get("/metrics", "127.9.9.9:9090"), loopback, 0},
      {"host by v6", get("/metrics", "[::1]:9090"), loopback, 0},
      {"host in capitals", get("/metrics", "LOCALHOST:9090"), loopback, 0},
      {"host without port", get("/metrics", "localhost"), loopback, 0},
      {"host with another port", get("/metrics", "localhost:80"), loopback, 403, "foreign_host"},
      {"foreign host", get("/metrics", "evil.example:9090"), loopback, 403, "foreign_host"},
      {"foreign host with the token", with_token(get("/metrics", "evil.example:9090"), "Bearer t0k"), guarded, 403,
       "foreign_host"},
      {"foreign host at health", get("/healthz", "evil.example:9090"), loopback, 403, "foreign_host"},
      {"looks like localhost", get("/metrics", "localhost.evil.example:9090"), loopback, 403, "foreign_host"},
      {"no host", get("/metrics", ""), loopback, 403, "foreign_host"},
      {"broken host", get("/metrics", "[::1"), loopback, 403, "foreign_host"},
      {"broken host after brackets", get("/metrics", "[::1]9090"), loopback, 403, "foreign_host"},
      {"empty brackets", get("/metrics", "[]:9090"), loopback, 403, "foreign_host"},
      {"another address of the machine", get("/metrics", "192.0.2.7:9090"), loopback, 403, "foreign_host"},
      {"public by its address", with_token(get("/metrics", "192.0.2.7:9090"), "Bearer t0k"), on_public, 0},
      {"public by its name", with_token(get("/metrics", "gw.example:9090"), "Bearer t0k"), on_public, 0},
      {"public by a name without token", get("/metrics", "gw.example:9090"), on_public, 403, "foreign_host"},

      {"same origin", from("http://127.0.0.1:9090"), loopback, 0},
      {"foreign origin", from("http://evil.example"), loopback, 403, "foreign_origin"},
      {"other port", from("http://127.0.0.1:8080"), loopback, 403, "foreign_origin"},
      {"hidden origin", from("null"), loopback, 403, "foreign_origin"},
  };
  for (const Row& row : table) {
    const AdminVerdict verdict = judge(row.request, row.place);
    EXPECT_EQ(verdict.status, row.status) << row.name;
    EXPECT_EQ(verdict.code, row.code) << row.name;
  }
}

TEST(AdminRules, NameTheMethodAllowed) {
  EXPECT_EQ(judge(post("/metrics"), loopback).allow, "GET");
  EXPECT_EQ(judge(get("/admin/reload"), loopback).allow, "POST");
}

}  // namespace
}  // namespace headgate::gateway
