// Every kind of problem: one fault in an otherwise good file gives exactly one problem, with its line, path and words.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "config_text.hpp"

namespace headgate::config {
namespace {

struct Row {
  std::string text;
  unsigned line;
  const char *path, *message;
};

void expect_each(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const Loaded loaded = load(row.text);
    EXPECT_FALSE(loaded.options) << row.text;
    ASSERT_EQ(loaded.problems.size(), 1u) << row.text << all_of(loaded);
    EXPECT_EQ(loaded.problems[0].line, row.line) << row.text << all_of(loaded);
    EXPECT_EQ(loaded.problems[0].path, row.path) << row.text;
    EXPECT_EQ(loaded.problems[0].message, row.message) << row.text;
  }
}

TEST(Problems, OriginsAsBrowsersSendThem) {
  constexpr const char* right =
      "must be an origin as browsers send it, such as \"https://app.example:8443\": scheme, host and port in lower "
      "case, "
      "nothing behind; or \"*\"";
  for (const char* good :
       {"*", "https://app.example", "http://127.0.0.1:3000", "http://[::1]:81", "http://a:443", "app://obsidian.md"}) {
    EXPECT_TRUE(load(with_root("\"cors\": {\"origins\": [\"" + std::string(good) + "\"]}")).options) << good;
  }
  for (const char* bad : {"app.example", "https://App.example", "https://app.example/", "https://", "://app", "null"}) {
    const Loaded loaded = load(with_root("\"cors\": {\"origins\": [\"" + std::string(bad) + "\"]}"));
    ASSERT_EQ(loaded.problems.size(), 1u) << bad;
    EXPECT_EQ(loaded.problems[0].path, "$.cors.origins[0]");
    EXPECT_EQ(loaded.problems[0].message, "is \"" + std::string(bad) + "\", " + right);
  }
  const Loaded never_sent = load(with_root(R"("cors": {"origins": ["https://a:443"]})"));
  ASSERT_EQ(never_sent.problems.size(), 1u);
  EXPECT_EQ(never_sent.problems[0].message,
            R"(is "https://a:443", must be without its port, which browsers leave out: it is the scheme's own)");
}

TEST(Problems, NamesAndTypes) {
  expect_each({
      {with_root(R"("worker": 2)"), 2, "$.worker", "unknown field; did you mean \"workers\"?"},
      {with_backends("[{\"url\": \"http://h\",\n\"Slots\": 3}]"), 4, "$.pools.small.backends[0].Slots",
       "unknown field; did you mean \"slots\"?"},
      {with_listen(R"("allow_anonymous": true, "zzz": 1)"), 2, "$.listen.zzz",
       "unknown field; known here: data, admin, allow_anonymous, insecure, connections_max, connections_per_address, "
       "trusted_proxies, "
       "tls"},
      {with_root("\"workers\": 2,\n\n\"workers\": 3"), 4, "$.workers", "duplicate key: first written on line 2"},
      {with_root(R"("workers": "2")"), 2, "$.workers", "is \"2\", must be a whole number 1..256, without quotes"},
      {with_root(R"("workers": 1.0)"), 2, "$.workers", "is 1.0, must be a whole number 1..256, without quotes"},
      {with_root(R"("workers": true)"), 2, "$.workers", "is true, must be a whole number 1..256, without quotes"},
      {with_root(R"("workers": null)"), 2, "$.workers",
       "is null, must be a whole number 1..256, without quotes; leave the field out to have its default"},
      {with_root(R"("workers": [1])"), 2, "$.workers", "is a list, must be a whole number 1..256, without quotes"},
      {with_listen(R"("allow_anonymous": "yes")"), 2, "$.listen.allow_anonymous",
       "is \"yes\", must be true or false, without quotes"},
      {with_root(R"("limits": 5)"), 2, "$.limits", "is a number, must be an object {...}"},
      {with_pool(R"("quality": "good")"), 3, "$.pools.small.quality",
       "is \"good\", must be a number 0..1, without quotes"},
      {with_pool(R"("model": 5)"), 3, "$.pools.small.model",
       "is 5, must be text: 1 to 256 bytes without control characters"},
      {with_pool(R"("balance": "random")"), 3, "$.pools.small.balance",
       "is \"random\", must be one of \"round_robin\", \"weighted\", \"least_in_flight\", \"p2c\""},
      {with_pool(R"("balance": "round-robin")"), 3, "$.pools.small.balance",
       "is \"round-robin\", must be one of \"round_robin\", \"weighted\", \"least_in_flight\", \"p2c\"; did you mean "
       "\"round_robin\"?"},
      {with_pool(R"("health": {"cooldown_last_backend": "attempt"})"), 3, "$.pools.small.health.cooldown_last_backend",
       "is \"attempt\", must be one of \"refuse\", \"try\""},
      {with_root(R"("log": {"level": "warning"})"), 2, "$.log.level",
       "is \"warning\", must be one of \"trace\", \"debug\", \"info\", \"warn\", \"error\""},
      {text_of({.pools = "[]", .routes = "{\"chat\": {\"pools\": [\"small\"]}}"}), 3, "$.pools",
       "is a list, must be an object {...}"},
      {with_root("\"$schema\": 5"), 2, "$.$schema", "is 5, must be text: the address of a schema"},
  });
}

TEST(Problems, RangesAndUnits) {
  expect_each({
      {with_root(R"("workers": 0)"), 2, "$.workers", "is 0, must be 1..256"},
      {with_root(R"("workers": 99999999999999999999)"), 2, "$.workers", "is 99999999999999999999, must be 1..256"},
      {with_backends(R"([{"url": "http://h", "weight": -1}])"), 3, "$.pools.small.backends[0].weight",
       "is -1, must be 1..1000"},
      {with_pool(R"("quality": 1.5)"), 3, "$.pools.small.quality", "is 1.5, must be 0..1"},
      {with_pool(R"("price": {"input": -0.1})"), 3, "$.pools.small.price.input", "is -0.1, must be 0..1000000"},
      {with_root(R"("drain": "25h")"), 2, "$.drain", "is \"25h\", must be 0s..24h"},
      {with_root(R"("drain": 30)"), 2, "$.drain",
       "is 30, must be a duration with its unit in quotes: \"30s\" for seconds, \"30ms\" for milliseconds"},
      {with_root(R"("drain": "30")"), 2, "$.drain", "is \"30\", must end in a unit out of ns, us, ms, s, m, h"},
      {with_root(R"("drain": "30 sec")"), 2, "$.drain",
       "is \"30 sec\", must be a number followed by a unit out of ns, us, ms, s, m, h; did you mean \"30s\"?"},
      {with_root(R"("drain": {})"), 2, "$.drain",
       "is an object, must be a duration with its unit in quotes, such as \"500ms\" or \"30s\""},
      {with_root(R"("limits": {"body": 1048576})"), 2, "$.limits.body",
       "is 1048576, must be a size with its unit in quotes, such as \"32MiB\""},
      {with_root(R"("limits": {"body": "2GiB"})"), 2, "$.limits.body", "is \"2GiB\", must be 1KiB..1GiB"},
      {with_root(R"("limits": {"body": "32mb"})"), 2, "$.limits.body",
       "is \"32mb\", must be a number followed by a unit out of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB; did you mean "
       "\"32MB\"?"},
      {with_pool(R"("queue": {"bytes_max": "1PB"})"), 3, "$.pools.small.queue.bytes_max",
       "is \"1PB\", must be a number followed by a unit out of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB"},
      {with_root(R"("limits": {"bodies": "1MiB"})"), 2, "$.limits.bodies",
       "is \"1MiB\", must be at least $.limits.body, which is \"32MiB\""},
      {with_pool(R"("probe": {"timeout": "6s"})"), 3, "$.pools.small.probe.timeout",
       "is \"6s\", must be at most interval, which is \"5s\""},
      {with_pool(R"("probe": {"interval": "1s"})"), 3, "$.pools.small.probe.interval",
       "is \"1s\", must be at least timeout, which is \"2s\""},
      {with_pool(R"("health": {"eject": "3m"})"), 3, "$.pools.small.health.eject",
       "is \"3m\", must be at most eject_max, which is \"2m\""},
      {with_route(R"("retry": {"backoff": "2s"})"), 4, "$.routes.chat.retry.backoff",
       "is \"2s\", must be at most backoff_max, which is \"1s\""},
      {with_route(R"("retry": {"budget_initial": 30})"), 4, "$.routes.chat.retry.budget_initial",
       "is 30.0, must be at most budget_max, which is 20.0"},
      {with_route(R"("retry": {"budget_max": 1})"), 4, "$.routes.chat.retry.budget_max",
       "is 1.0, must be at least budget_initial, which is 10.0"},
      {with_route(R"("retry": {"attempts_max": 0})"), 4, "$.routes.chat.retry.attempts_max", "is 0, must be 1..16"},
  });
}

TEST(Problems, MissingAndEmpty) {
  expect_each({
      {"{\n\"listen\": {\"allow_anonymous\": true},\n\"routes\": {\"chat\": {\"pools\": [\"a\"]}}}", 1, "$.pools",
       "is missing and has no default: Groups of model servers."},
      {"{\"listen\": {\"allow_anonymous\": true},\n\"pools\": {\"a\": {\"backends\": [{\"url\": \"http://h\"}]}}}", 1,
       "$.routes", "is missing and has no default: Public model names: what callers write as \"model\"."},
      {with_backends("[\n{}]"), 4, "$.pools.small.backends[0].url",
       "is missing and has no default: Where the model server listens; no path, port 80 when none is given."},
      {with_backends("[]"), 3, "$.pools.small.backends", "is empty, must have 1..1000"},
      {text_of({.pools = R"({"small": {}})"}), 3, "$.pools.small.backends",
       "is missing and has no default: Servers that answer alike, at one price and quality."},
      {text_of({.routes = R"({"chat": {"pools": []}})"}), 4, "$.routes.chat.pools", "is empty, must have 1..8"},
      {text_of({.routes = "{}"}), 4, "$.routes", "is empty, must have 1..1000"},
      {text_of({.pools = "{}"}), 3, "$.pools", "is empty, must have 1..1000"},
      {text_of({.routes = R"({"chat": {"pools": ["a","b","c","d","e","f","g","h","i"]}})"}), 4, "$.routes.chat.pools",
       "has 9 items, must have 1..8"},
      {with_root(R"("keys": [{"name": "a", "key": "k", "routes": []}])"), 2, "$.keys[0].routes",
       "is empty, must have 1..1000"},
      {with_pool(R"("api_key": "")"), 3, "$.pools.small.api_key",
       "is empty, must not be empty: leave the field out to have none"},
  });
}

TEST(Problems, Forms) {
  const char* url = "must be http://host:port or https://host:port without a path, such as \"http://127.0.0.1:9001\"";
  const std::string path_message = std::string("is \"http://h/v1\", ") + url;
  const std::string host_message = std::string("is \"h:9001\", ") + url;
  expect_each({
      {with_backends(R"([{"url": "http://h/v1"}])"), 3, "$.pools.small.backends[0].url", path_message.c_str()},
      {with_backends(R"([{"url": "h:9001"}])"), 3, "$.pools.small.backends[0].url", host_message.c_str()},
      {with_backends(R"([{"url": "http://h:70000"}])"), 3, "$.pools.small.backends[0].url",
       "is \"http://h:70000\", must have a port 1..65535, such as \"http://127.0.0.1:9001\""},
      {with_backends(R"([{"url": "http://user:hunter2@h"}])"), 3, "$.pools.small.backends[0].url",
       "is \"***\", must not hold a user or password: a key goes into the pool's \"api_key\""},
      {with_backends(R"([{"url": "http://h", "name": "a/b"}])"), 3, "$.pools.small.backends[0].name",
       "is \"a/b\", must be 1 to 64 letters, digits, dots, underscores or hyphens"},
      {with_listen(R"("allow_anonymous": true, "data": "localhost:8080")"), 2, "$.listen.data",
       "is \"localhost:8080\", must be a numeric address: 127.0.0.1 or [::1] for localhost"},
      {with_listen(R"("allow_anonymous": true, "admin": "127.0.0.1:99999")"), 2, "$.listen.admin",
       "is \"127.0.0.1:99999\", must end in a port 0..65535, such as \"127.0.0.1:8080\""},
      {with_listen(R"("allow_anonymous": true, "data": "127.0.0.1")"), 2, "$.listen.data",
       "is \"127.0.0.1\", must be address:port, such as \"127.0.0.1:8080\" or \"[::1]:8080\""},
      {with_keys(R"([{"name": "a", "sha256": "abc"}])"), 2, "$.keys[0].sha256",
       "has 3 characters (not shown), must be a SHA-256 digest of 64 hex digits: printf %s \"$KEY\" | sha256sum"},
      {with_pool(R"("probe": {"path": "health"})"), 3, "$.pools.small.probe.path",
       "is \"health\", must be a path such as \"/health\": it begins with / and has no spaces"},
      {text_of(
           {.pools = R"({"a b": {"backends": [{"url": "http://h"}]}, "small": {"backends": [{"url": "http://i"}]}})"}),
       3, "$.pools[\"a b\"]", "the name \"a b\" must be 1 to 64 letters, digits, dots, underscores or hyphens"},
      {text_of({.routes = R"({"": {"pools": ["small"]}})"}), 4, "$.routes[\"\"]",
       "the name \"\" must be 1 to 256 bytes without control characters"},
  });
}

TEST(Problems, NamesThatMustExistOrBeUnique) {
  const std::string digest = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";  // of foo
  expect_each({
      {text_of({.routes = R"({"chat": {"pools": ["smal"]}})"}), 4, "$.routes.chat.pools[0]",
       "is \"smal\", must name a pool of this file; did you mean \"small\"?"},
      {text_of({.routes = R"({"gpt-4.1": {"pools": ["small", "zzz"]}})"}), 4, "$.routes[\"gpt-4.1\"].pools[1]",
       "is \"zzz\", must name a pool of this file; known here: small"},
      {text_of({.routes = R"({"chat": {"pools": ["small", "small"]}})"}), 4, "$.routes.chat.pools[1]",
       "is \"small\" as $.routes.chat.pools[0] (line 4) is; must stand in a route only once"},
      {with_keys(R"([{"name": "a", "key": "k", "routes": ["caht"]}])"), 2, "$.keys[0].routes[0]",
       "is \"caht\", must name a route of this file; did you mean \"chat\"?"},
      {with_backends("[{\"name\": \"x\", \"url\": \"http://h\"},\n{\"name\": \"x\", \"url\": \"http://i\"}]"), 4,
       "$.pools.small.backends[1].name",
       "is \"x\" as $.pools.small.backends[0].name (line 3) is; must be unique in its pool"},
      {with_backends("[{\"name\": \"b2\", \"url\": \"http://h\"},\n{\"url\": \"http://i\"}]"), 4,
       "$.pools.small.backends[1].name",
       "is \"b2\" as $.pools.small.backends[0].name (line 3) is; must be unique in its pool"},
      {with_backends("[{\"url\": \"http://h:80\"},\n{\"url\": \"http://H\"}]"), 4, "$.pools.small.backends[1].url",
       "is \"h:80\" as $.pools.small.backends[0].url (line 3) is; must be unique in its pool"},
      {with_keys(R"([{"name": "a", "key": "k"}, {"name": "a", "key": "l"}])"), 2, "$.keys[1].name",
       "is \"a\" as $.keys[0].name (line 2) is; must be unique"},
      {with_keys("[{\"name\": \"a\", \"sha256\": \"" + digest + "\"},\n{\"name\": \"b\", \"key\": \"foo\"}]"), 3,
       "$.keys[1].key", "is the same key as $.keys[0] (line 2) has"},
      {with_keys(R"([{"name": "a"}])"), 2, "$.keys[0]", "has neither \"sha256\" nor \"key\", must have one of them"},
      {with_keys("[{\"name\": \"a\", \"key\": \"foo\", \"sha256\": \"" + digest + "\"}]"), 2, "$.keys[0]",
       "has both \"sha256\" and \"key\", must have one of them"},
  });
}

TEST(Problems, OneUrlInTwoPoolsMustAgree) {
  const auto two = [](const std::string& first, const std::string& second) {
    return text_of({.pools = "{\"a\": {" + first + "},\n\"small\": {" + second + "}}"});
  };
  const std::string backends = R"("backends": [{"url": "http://h:1"}])";
  const std::string tls_backends = R"("backends": [{"url": "https://h:1"}])";
  EXPECT_TRUE(load(two(backends, backends)).options);
  expect_each({
      {two(R"("backends": [{"url": "http://h:1", "slots": 4}])", R"("backends": [{"url": "http://h:1", "slots": 5}])"),
       4, "$.pools.small.backends[0].slots",
       "is 5, must be 4 as $.pools.a.backends[0].slots (line 3) is: both share the limit of h:1"},
      {two(backends, R"("backends": [{"url": "http://h:1", "slots": 5}])"), 4, "$.pools.small.backends[0].slots",
       "is 5, must be 16 as $.pools.a.backends[0].slots (line 3) is: both share the limit of h:1"},
      {two(backends, R"("backends": [{"url": "http://h:1", "connections_max": 5}])"), 4,
       "$.pools.small.backends[0].connections_max",
       "is 5, must be absent as $.pools.a.backends[0].connections_max (line 3) is: both share the connections to h:1"},
      {two(backends, backends + R"(, "probe": {"path": "/ping"})"), 4, "$.pools.small.probe",
       "must say the same as $.pools.a.probe (line 3): both pools have h:1"},
      {two(backends, backends + R"(, "health": {"eject": "1s"})"), 4, "$.pools.small.health",
       "must say the same as $.pools.a.health (line 3): both pools have h:1"},
      {two(tls_backends, tls_backends + R"(, "tls": {"verify": false})"), 4, "$.pools.small.tls",
       "must say the same as $.pools.a.tls (line 3): both pools have https://h:1"},
  });
}

TEST(Problems, WhoMayCall) {
  expect_each({
      {"{\n\"pools\": {\"a\": {\"backends\": [{\"url\": \"http://h\"}]}}, \"routes\": {\"c\": {\"pools\": [\"a\"]}}}",
       1, "$.keys", "is missing: nobody could call; add keys, or set $.listen.allow_anonymous to true"},
      {with_keys("[]"), 2, "$.keys", "is empty: nobody could call; add keys, or set $.listen.allow_anonymous to true"},
      {with_listen("\"data\": \"0.0.0.0:8080\",\n\"allow_anonymous\": true"), 3, "$.listen.allow_anonymous",
       "is true while $.listen.data is \"0.0.0.0:8080\", which others can reach: must be false, or $.listen.insecure "
       "true as "
       "well"},
      {with_listen(R"("allow_anonymous": true, "admin": "[::]:9090")"), 2, "$.listen.admin",
       "is \"[::]:9090\", which others can reach: must be a loopback address, or $.admin.token be set"},
      {with_listen(R"("allow_anonymous": true, "admin": "127.0.0.1:8080")"), 2, "$.listen.admin",
       "is \"127.0.0.1:8080\", the same as $.listen.data; must have a port of its own"},
      {with_pool(R"("api_key": "k", "forward_client_auth": true)"), 3, "$.pools.small.forward_client_auth",
       "is true, must be false when the pool has an \"api_key\" of its own"},
  });
}

TEST(Problems, WhatIsAllowedLoads) {
  for (const std::string& text : {
           with_listen(R"("data": "0.0.0.0:8080", "allow_anonymous": true, "insecure": true)"),
           with_listen(R"("data": "127.0.0.1:0", "admin": "127.0.0.1:0", "allow_anonymous": true)"),
           with_listen(R"("admin": "0.0.0.0:9", "allow_anonymous": true}, "admin": {"token": "t")"),
           with_keys(R"([{"name": "a", "key": "k"}])"),
           with_root("\"$schema\": \"./schema.json\""),
           with_route(R"("budget": {"ttft": "1s"}, "head_hold": "0s", "order": "priority")"),
       }) {
    EXPECT_TRUE(load(text).options) << text << all_of(load(text));
  }
}

TEST(Problems, AllOfAFileComeInOneRunInTheOrderOfLines) {
  const Loaded loaded = load(R"({
  "worker": 1,
  "listen": {"allow_anonymous": true, "data": "x"},
  "limits": {
    "body": "32mb",
    "body": "1MiB",
    "keep_alive": 75
  },
  "pools": {
    "small": {"backends": [{"url": "http://h:1", "slots": 0}, {}], "balance": "best"},
    "large": {"backends": []}
  },
  "keys": [{"name": "a"}],
  "routes": {"chat": {"pools": ["smal", 5]}}
})");
  std::vector<std::string> found;
  for (const Problem& p : loaded.problems) found.push_back(std::to_string(p.line) + " " + p.path);
  const std::vector<std::string> expected{"2 $.worker",
                                          "3 $.listen.data",
                                          "5 $.limits.body",
                                          "6 $.limits.body",
                                          "7 $.limits.keep_alive",
                                          "10 $.pools.small.balance",
                                          "10 $.pools.small.backends[0].slots",
                                          "10 $.pools.small.backends[1].url",
                                          "11 $.pools.large.backends",
                                          "13 $.keys[0]",
                                          "14 $.routes.chat.pools[1]",
                                          "14 $.routes.chat.pools[0]"};
  EXPECT_EQ(std::set<std::string>(found.begin(), found.end()), std::set<std::string>(expected.begin(), expected.end()))
      << all_of(loaded);
  EXPECT_EQ(found.size(), expected.size());
  for (std::size_t i = 1; i < loaded.problems.size(); ++i) {
    EXPECT_LE(loaded.problems[i - 1].line, loaded.problems[i].line);
  }
}

TEST(Problems, PrintAsFileLinePathMessage) {
  EXPECT_EQ(to_text({3, "$.a", "is 1"}, "x.jsonc"), "x.jsonc:3: $.a: is 1");
  EXPECT_EQ(to_text({3, "", "syntax error"}, "x.jsonc"), "x.jsonc:3: syntax error");
  EXPECT_EQ(to_text({0, "", "cannot be opened"}, "x.jsonc"), "x.jsonc: cannot be opened");
}

}  // namespace
}  // namespace headgate::config
