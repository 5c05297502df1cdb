// TLS towards callers and towards backends, with certificates made on the spot.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/child_process.hpp"
#include "support/gateway_process.hpp"
#include "support/machine_lag.hpp"
#include "support/steady_callers.hpp"
#include "support/tls_tunnel.hpp"

namespace headgate::support {
namespace {

const Identity& authority() {
  static const Identity made = make_identity({.name = "test authority"});
  return made;
}
Identity server_identity(Wanted wanted = {}) {
  wanted.signed_by = &authority();
  return make_identity(wanted);
}

std::string expected_events() {
  std::string all;
  for (const std::string& event : good_events("m", false)) all += event;
  return all;
}

class TlsCallers : public testing::Test {
 protected:
  nlohmann::json config() const {
    auto config = basic_config({&upstream_});
    config["listen"]["tls"] = {{"certificate", certificate_.path()}, {"key", key_.path()}};
    config["limits"]["head_time"] = "400ms";
    return config;
  }
  double failures(const char* reason) const {
    return gateway_.metric("headgate_tls_handshake_failures_total", {{"peer", "caller"}, {"reason", reason}});
  }

  const Identity identity_ = server_identity();
  const TextFile certificate_{identity_.certificate}, key_{identity_.key};
  ScriptedUpstream upstream_{good_answer()};
  GatewayProcess gateway_{config()};
  TlsTunnel tunnel_{TlsTunnel::originate, gateway_.port(), {.trusted = authority().certificate}};
};

TEST_F(TlsCallers, AreServedOnKeptConnectionsUnaryStreamedAndLarge) {
  RawClient caller(tunnel_.port());
  for (int n = 0; n < 3; ++n) {
    const Reply plain = caller.ask(chat_request(chat_body(false)));
    EXPECT_EQ(plain.status, 200) << plain.raw;
    EXPECT_EQ(plain.body, good_body("m"));
    const Reply streamed = caller.ask(chat_request(chat_body(true)));
    EXPECT_EQ(streamed.body, expected_events());
    EXPECT_TRUE(streamed.complete);
  }
  const std::string large(3 << 20, 'x');
  upstream_.set_script(always(plain_reply(200, "{\"text\":\"" + large + "\"}")));
  const std::string body = chat_body(false, "m", ",\"user\":\"" + large + "\"");
  EXPECT_EQ(caller.ask(chat_request(body), scaled(20s)).body, "{\"text\":\"" + large + "\"}");
  EXPECT_EQ(upstream_.arrivals().back().body, body);
  EXPECT_EQ(tunnel_.handshakes(), 1u);
  EXPECT_GT(gateway_.metric("headgate_certificate_expiry_timestamp_seconds"), 1.7e9);
}

TEST_F(TlsCallers, WhoSpeaksPlainHttpIsToldSo) {
  RawClient plain(gateway_.port());
  const Reply reply = plain.ask(chat_request(chat_body(false)));
  EXPECT_EQ(reply.status, 400) << reply.raw;
  EXPECT_EQ(error_code_of(reply), "tls_required");
  EXPECT_TRUE(eventually(scaled(2s), [&] { return failures("plain_http") == 1; }));
  RawClient noise(gateway_.port());
  noise.send("\x01\x02\x03\x04 something else altogether");
  EXPECT_EQ(noise.read_reply(scaled(2s)).status, 0);
  EXPECT_TRUE(eventually(scaled(2s), [&] { return failures("not_tls") == 1; }));
  EXPECT_EQ(upstream_.arrival_count(), 0u);
}

TEST_F(TlsCallers, AHandshakeThatDoesNotEndIsCutAtTheHeadsTime) {
  MachineLag lag;
  const Time begun = now();
  Socket silent = connect_to_loopback(gateway_.port()), half = connect_to_loopback(gateway_.port());
  ASSERT_TRUE(send_all(half, std::string_view("\x16\x03\x01\x02\x00\x01", 6), now() + 1s));
  for (Socket* one : {&silent, &half}) {
    EXPECT_NE(receive(*one, after(now(), scaled(5s))).what, Got::nothing);
    EXPECT_GE(to_ms(now() - begun), 395);
    EXPECT_LE(to_ms(now() - begun), to_ms(400ms + scaled(200ms) + lag.slack()));
  }
  EXPECT_TRUE(eventually(scaled(2s), [&] { return failures("timeout") == 2; }));
}

// Steady callers on kept connections while the certificate is exchanged; then a key that does not belong
// to it, which changes nothing.
TEST_F(TlsCallers, AReloadShowsTheNewCertificateOrKeepsTheOldOne) {
  SteadyCallers callers(tunnel_.port(), 3, 50ms);
  ASSERT_TRUE(eventually(scaled(5s), [&] { return tunnel_.handshakes() == 3; }));
  const Identity other_authority = make_identity({.name = "another authority"});
  const Identity fresh = make_identity({.signed_by = &other_authority});
  const TextFile fresh_certificate(fresh.certificate), fresh_key(fresh.key);
  auto config = gateway_.config();
  config["listen"]["tls"] = {{"certificate", fresh_certificate.path()}, {"key", fresh_key.path()}};
  gateway_.rewrite_config(config);
  EXPECT_EQ(gateway_.admin_post("/admin/reload").status, 200);
  TlsTunnel trusting(TlsTunnel::originate, gateway_.port(), {.trusted = other_authority.certificate});
  EXPECT_EQ(ask_once(trusting.port(), chat_request(chat_body(false))).status, 200);
  EXPECT_EQ(ask_once(tunnel_.port(), chat_request(chat_body(false))).status, 0) << "signed by somebody else now";
  config["listen"]["tls"]["key"] = key_.path();
  gateway_.rewrite_config(config);
  const Reply refused = gateway_.admin_post("/admin/reload");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("does not belong to the certificate"), std::string::npos) << refused.body;
  EXPECT_NE(refused.body.find("$.listen.tls.key"), std::string::npos) << refused.body;
  EXPECT_EQ(ask_once(trusting.port(), chat_request(chat_body(false))).status, 200);
  callers.stop();
  for (const std::string& fault : callers.faults()) ADD_FAILURE() << fault;  // on the connections they had
}

TEST(TlsCallersStart, ACertificateThatIsMissingOrAboutToExpireIsSaid) {
  const Identity soon = server_identity({.to_days = 3});
  const TextFile certificate(soon.certificate), key(soon.key);
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  config["listen"]["tls"] = {{"certificate", certificate.path()}, {"key", key.path()}};
  GatewayProcess gateway(config);
  EXPECT_NE(gateway.output().find("expires in 3.0 days"), std::string::npos) << gateway.output();
  config["listen"]["tls"]["certificate"] = "/nowhere/at-all.pem";
  const TextFile file(config.dump());
  ChildProcess serve({"serve", "--config", file.path()});
  EXPECT_EQ(serve.exit_code(scaled(5s)), 2);
  EXPECT_NE(serve.output().find("\"/nowhere/at-all.pem\", which cannot be read: No such file"), std::string::npos)
      << serve.output();
}

class TlsBackends : public testing::Test {
 protected:
  nlohmann::json config(const TlsTunnel& server, const nlohmann::json& tls) const {
    auto config = basic_config({});
    auto backend = backend_config("u1", server.port());
    backend["url"] = "https://localhost:" + std::to_string(server.port());
    config["pools"]["p"]["backends"] = nlohmann::json::array({backend});
    config["pools"]["p"]["tls"] = tls;
    config["pools"]["p"]["probe"]["interval"] = "200ms";
    config["workers"] = 1;  // sessions to resume are a worker's own
    config["pools"]["p"]["probe"]["timeout"] = "200ms";
    return config;
  }
  const TextFile trusted_{authority().certificate};
  ScriptedUpstream upstream_{good_answer()};
};

TEST_F(TlsBackends, AreTrustedByAPrivateAuthorityNamedAndResumed) {
  TlsTunnel server(TlsTunnel::terminate, upstream_.port(), {.identity = server_identity()});
  GatewayProcess gateway(config(server, {{"ca", trusted_.path()}}));
  EXPECT_EQ(ask_once(gateway.port(), chat_request(chat_body(true))).body, expected_events());
  upstream_.set_script(always(plain_reply(200, good_body("m"), "Connection: close\r\n")));
  const std::size_t before = server.resumed();
  for (int n = 0; n < 5; ++n) EXPECT_EQ(ask_once(gateway.port(), chat_request(chat_body(false))).body, good_body("m"));
  EXPECT_GE(server.resumed() - before, 4u) << "of " << server.handshakes();
  for (const std::string& name : server.names_asked()) EXPECT_EQ(name, "localhost");
  EXPECT_GE(upstream_.probes().size(), 1u) << "the probes come by TLS too";
  EXPECT_EQ(gateway.metric("headgate_probe_failures_total"), 0);
}

TEST_F(TlsBackends, AreNotSpokenToWhenTheirCertificateIsNotTheirs) {
  const struct {
    const char* what;
    Identity identity;
    const char* said;
  } table[] = {
      {"signed by itself", make_identity({}), "self-signed certificate"},
      {"for another name", server_identity({.name = "elsewhere.example", .address_too = false}), "hostname mismatch"},
      {"expired", server_identity({.from_days = -9, .to_days = -1}), "certificate has expired"},
  };
  for (const auto& row : table) {
    TlsTunnel server(TlsTunnel::terminate, upstream_.port(), {.identity = row.identity});
    GatewayProcess gateway(config(server, {{"ca", trusted_.path()}}), {.wait_ready = false});
    const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)));
    EXPECT_GE(reply.status, 500) << row.what << reply.raw;
    EXPECT_GE(gateway.metric("headgate_tls_handshake_failures_total", {{"peer", "backend"}, {"reason", "certificate"}}),
              1)
        << row.what;
    EXPECT_NE(gateway.output().find(row.said), std::string::npos) << row.what << gateway.output();
    EXPECT_TRUE(eventually(scaled(5s), [&] {
      return gateway.output().find("a probe was missed: TLS: certificate verify failed") != std::string::npos;
    })) << gateway.output();
    EXPECT_EQ(reply.raw.find(row.said), std::string::npos) << "the caller need not know";
  }
  EXPECT_EQ(upstream_.arrival_count(), 0u);
  EXPECT_EQ(upstream_.probes().size(), 0u);
  TlsTunnel server(TlsTunnel::terminate, upstream_.port(), {.identity = make_identity({})});
  GatewayProcess unverified(config(server, {{"verify", false}}));
  EXPECT_EQ(ask_once(unverified.port(), chat_request(chat_body(false))).status, 200);
  GatewayProcess named(config(server, {{"verify", false}, {"server_name", "models.internal"}}));
  EXPECT_EQ(ask_once(named.port(), chat_request(chat_body(false))).status, 200);
  EXPECT_EQ(server.names_asked().back(), "models.internal");
}

TEST_F(TlsBackends, ThatSpeakPlainHttpAreAFailedConnect) {
  auto plain = basic_config({&upstream_});
  plain["pools"]["p"]["backends"][0]["url"] = "https://" + upstream_.authority();
  plain["routes"]["m"]["timeouts"]["connect"] = "300ms";  // it waits for the rest of a request line
  GatewayProcess gateway(plain, {.wait_ready = false});
  EXPECT_GE(ask_once(gateway.port(), chat_request(chat_body(false))).status, 500);
  EXPECT_EQ(upstream_.arrival_count(), 0u);
}

}  // namespace
}  // namespace headgate::support
