// The subcommand table; each entry calls one function.
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <iostream>

#include "backends/mock/options.hpp"
#include "backends/mock/server.hpp"
#include "config/commands.hpp"
#include "config/units.hpp"
#include "gateway/serve.hpp"
#include "loadtest/load.hpp"
#include "loadtest/sim/simulate.hpp"
#include "policies/base/nearest.hpp"

namespace {

using namespace headgate;

// The library's own takes -1 for the greatest number there is.
CLI::Validator whole_number(std::uint64_t low, std::uint64_t high) {
  const std::string range = std::to_string(low) + ".." + std::to_string(high);
  const auto check = [low, high, range](const std::string& text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool good = error == std::errc() && end == text.data() + text.size() && value >= low && value <= high;
    return good ? std::string() : "is \"" + text + "\", must be a whole number " + range;
  };
  return {check, high == UINT64_MAX ? "" : range};
}

void add_mock_flags(CLI::App& app, mock::MockOptions& o) {
  app.add_option("--host", o.host, "address to listen on")->capture_default_str();
  const auto port = whole_number(0, 65535);
  app.add_option("--port", o.port, "port of the first replica; the others follow")->check(port)->capture_default_str();
  app.add_option("--control-port", o.control_port,
                 "POST /control also here (first replica; the others follow); 0: only on the data port")
      ->check(port)
      ->capture_default_str();
  app.add_option("--replicas", o.replicas, "model servers in this process")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  app.add_option("--profile", o.profiles,
                 "instant: answers at once, for wrk; paced: 10 ms per token; demo: prefill and 20 ms per token; "
                 "qwen3-32b-2xh100, llama-3.1-8b-h100, llama-70b-8xh100: as fast as these; or a file (MOCK.md). "
                 "Repeatable: of the replicas in turn")
      ->capture_default_str();
  app.add_option("--slots", o.slots, "requests a replica works on at once, instead of the profile's")
      ->check(whole_number(1, 65536));
  app.add_option("--time-scale", o.time_scale,
                 "10: ten times as fast as the profile says; 0.1: ten times slower (0.001..1000)")
      ->capture_default_str();
  app.add_option("--faults", o.faults,
                 "what happens by itself: a file, lines such as "
                 "{\"at_ms\":10000,\"replica\":0,\"fault\":\"hang\",\"for_ms\":5000}");
  app.add_option("--seed", o.seed, "of faults with a share, and of when they come")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  app.add_option("--model", o.models, "model name it answers to (repeatable); none: any");
  app.footer(
      "Examples:\n  headgate mock --port 9001 --replicas 4 --profile demo\n"
      "  curl localhost:9001/control -d '{\"speed\":0.2}'\nMOCK.md tells of faults, plans and profiles.");
}

// What arrives when, how it is judged, and where the results go.
void add_plan_flags(CLI::App& app, loadtest::LoadOptions& o) {
  const auto text = [&app](const char* name, auto& field, const char* help) {
    return app.add_option(name, field, help)->capture_default_str();
  };
  text("--model", o.model, "model asked for");
  text("--stream-share", o.stream_share, "0..1 of the requests are streams");
  app.add_flag_callback(
      "--unary", [&o] { o.stream_share = 0; }, "no streams");
  app.add_option("--workload", o.workload,
                 "classes of requests, each with its rate over time, lengths, route and limits: a "
                 "file such as loadtest/workloads/spike.jsonc");
  text("--trace", o.trace,
       "Azure CSV, Mooncake JSON lines, {\"at_ms\":0,\"input\":10,\"output\":20} a line, or an event log of serve");
  text("--rate", o.rate, "requests per second, open loop");
  text("--arrivals", o.arrivals, "with --rate: poisson, gamma or azure-conv");
  text("--cv", o.cv, "with --arrivals gamma: how bursty, 1 is as poisson");
  text("--duration", o.duration, "how long, such as 30s");
  text("--limit", o.limit, "at most this many requests; 0: no limit")->check(whole_number(0, UINT64_MAX));
  text("--speed", o.speed, "play a trace this much faster");
  text("--seed", o.seed, "same seed, same load")->check(whole_number(0, UINT64_MAX));
  text("--lengths", o.lengths, "with --rate: fixed or azure-conv");
  text("--prompt-tokens", o.prompt_tokens, "with --lengths fixed")->check(whole_number(1, 1'000'000));
  text("--output-tokens", o.output_tokens, "with --lengths fixed")->check(whole_number(1, 1'000'000));
  app.add_option("--expect", o.expect, "condition on the JSON summary, such as cut==0 (repeatable)");
  text("--slo", o.slo, "any of ttft, tpot, gap, e2e");
  text("--json", o.json, "summary as JSON: a file, or - for standard output");
  text("--records", o.records, "one JSON line per request: a file");
  text("--timeline", o.timeline, "the run second by second, as CSV: a file");
}

// What a workload says itself.
void want_no_plan_beside_workload(const CLI::App& app) {
  if (app.count("--workload") == 0) return;
  for (const char* name : {"--model", "--stream-share", "--unary", "--trace", "--rate", "--arrivals", "--cv",
                           "--lengths", "--prompt-tokens", "--output-tokens"}) {
    if (app.count(name) > 0) throw CLI::ValidationError("--workload", std::string("does not go with ") + name);
  }
}

void want_little_beside_replay(const CLI::App& app) {
  if (app.count("--replay") == 0) return;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_single_name();
    const bool allowed = name == "replay" || name == "json" || name == "expect";
    if (option->count() > 0 && !allowed)
      throw CLI::ValidationError("--replay", "makes the calls of its log; it takes --json and --expect, not --" + name);
  }
}

void add_load_flags(CLI::App& app, loadtest::LoadOptions& o) {
  const auto text = [&app](const char* name, auto& field, const char* help) {
    return app.add_option(name, field, help)->capture_default_str();
  };
  add_plan_flags(app, o);
  text("--target", o.target, "gateway or model server, http://HOST:PORT");
  text("--path", o.path, "chat or completions");
  text("--api-key", o.api_key, "sent as Authorization: Bearer");
  app.add_flag_callback(
      "--no-check-tokens", [&o] { o.check_tokens = false; }, "don't check token counts (for real model servers)");
  text("--connections-max", o.connections_max, "open connections at most")->check(whole_number(1, 1'000'000));
  text("--timeout", o.timeout, "of one request");
  app.add_flag("--live", o.live, "one-screen summary while it runs");
  text("--admin", o.admin, "the gateway's admin listener, http://HOST:PORT, for --live");
  text("--title", o.title, "headline of --live");
  app.add_option(
      "--event", o.events,
      "at=WHEN;label=TEXT[;kill=POOL/BACKEND[;streams=N]];run=COMMAND (repeatable); WHEN: 1/3 of the time, or 20s");
  app.add_flag("--verdict", o.verdict, "end with PASS or FAIL");
  text("--write-trace", o.write_trace, "write the planned arrivals to this file and send nothing");
  app.footer(
      "Examples:\n  headgate load --target http://127.0.0.1:8080 --model chat --rate 20 --duration 30s --lengths "
      "azure-conv\n"
      "  headgate load --trace loadtest/traces/synthetic_conv_1500.csv --speed 4 --slo ttft=1s,tpot=50ms --json -");
}

// The file is one option that may stand with its name or without: shown once, among the options.
struct FileShownOnce : CLI::Formatter {
  std::string make_positionals(const CLI::App*) const override { return {}; }
  std::string make_option_usage(const CLI::Option* option) const override { return make_option_name(option, true); }
};

void add_file(CLI::App& app, std::string& file) {
  app.formatter(std::make_shared<FileShownOnce>());
  app.add_option("--config,FILE", file, "configuration file; FILE alone means the same")->option_text("FILE");
}

void want_file(const CLI::App& app, const std::string& file) {
  if (!file.empty()) return;
  throw CLI::ParseError("A configuration file is required: headgate " + app.get_name() + " FILE",
                        CLI::ExitCodes::RequiredError);
}

// When no subcommand was found: what stands there instead, and what could.
int no_subcommand(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
  const auto unknown = app.remaining();
  std::string message = "headgate: a subcommand is required";
  if (!unknown.empty()) {
    const bool option = unknown.front().starts_with('-');
    message = "headgate: \"" + unknown.front() + "\" is no " +
              (option ? "option, and a subcommand is required" : "subcommand");
  }
  const auto near = unknown.empty() ? std::nullopt : nearest(unknown.front(), names);
  if (near) message += "; did you mean \"" + *near + "\"?";
  std::cerr << message << (near ? " There are: " : "; there are: ") << CLI::detail::join(names, ", ") << '\n';
  return 2;
}

// Exit code 0 says that what was printed arrived.
int after_printing(int exit_code) {
  std::cout.flush();
  const bool arrived = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (arrived) return exit_code;
  std::cerr << "headgate: standard output cannot be written\n";
  return exit_code == 0 ? 1 : exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Headgate: a model-routing inference gateway. Callers speak the OpenAI API to it; behind it stand pools of model "
      "servers."};
  app.require_subcommand(1);
  app.set_version_flag("--version", "headgate " HEADGATE_VERSION);
  app.footer("Each subcommand has --help with an example.");
  int exit_code = 0;

  gateway::ServeOptions serve;
  serve.version = HEADGATE_VERSION;
  CLI::App* serve_app = app.add_subcommand("serve", "serve callers by a configuration file");
  add_file(*serve_app, serve.config);
  serve_app->add_flag("--watch", serve.watch, "reload when the file has changed and then rested for half a second");
  std::string event_log_max = "1GiB";
  serve_app->add_option("--event-log", serve.event_log,
                        "write all that is decided, for simulate --replay and --trace: a file; what it held moves to "
                        "FILE.1");
  serve_app
      ->add_option("--event-log-max", event_log_max,
                   "a file of this size, 1MiB or more, moves to FILE.1 and a new one goes on")
      ->capture_default_str();
  serve_app->footer(
      "Example: headgate serve --config config/examples/minimal.jsonc\nSIGHUP reloads the file; SIGTERM drains; a "
      "second signal ends at once.");
  serve_app->callback([&] {
    want_file(*serve_app, serve.config);
    if (serve_app->count("--event-log") > 0 && serve.event_log.empty())
      throw CLI::ValidationError("--event-log", "is \"\"; the name of a file is wanted");
    const auto most = config::parse_size(event_log_max);
    if (!most || most->count < (1u << 20))
      throw CLI::ValidationError("--event-log-max",
                                 "\"" + event_log_max + "\": a size such as 1GiB is wanted, 1MiB or more");
    serve.event_log_max = most->count;
    exit_code = gateway::serve(serve);
  });

  std::string file;
  bool json = false;
  CLI::App* check_app = app.add_subcommand("check", "say all that is wrong with a configuration file");
  add_file(*check_app, file);
  check_app->add_flag("--json", json, "for programs");
  check_app->footer("Example: headgate check config/examples/demo.jsonc");
  check_app->callback([&] {
    want_file(*check_app, file);
    exit_code = config::check(file, json, std::cout, std::cerr);
  });

  bool as_reference = false;
  CLI::App* schema_app = app.add_subcommand("schema", "print the JSON Schema of the configuration file");
  schema_app->add_flag("--reference", as_reference, "print the reference page (Markdown) instead");
  schema_app->footer("Example: headgate schema > headgate.schema.json");
  schema_app->callback(
      [&] { exit_code = as_reference ? config::print_reference(std::cout) : config::print_schema(std::cout); });

  mock::MockOptions mock;
  CLI::App* mock_app = app.add_subcommand("mock", "run mock model servers");
  add_mock_flags(*mock_app, mock);
  mock_app->callback([&] { exit_code = mock::serve(mock); });

  loadtest::LoadOptions load;
  CLI::App* load_app = app.add_subcommand("load", "play requests at their intended times and report");
  add_load_flags(*load_app, load);
  load_app->callback([&] {
    want_no_plan_beside_workload(*load_app);
    exit_code = loadtest::load(load);
  });

  loadtest::SimulateOptions simulate;
  CLI::App* simulate_app = app.add_subcommand("simulate", "play requests against a configuration in virtual time");
  add_file(*simulate_app, simulate.config);
  add_plan_flags(*simulate_app, simulate.load);
  simulate_app
      ->add_option("--profile", simulate.profiles,
                   "of the model servers: NAME, or POOL=NAME (repeatable; others: demo); there are paced, demo, "
                   "qwen3-32b-2xh100, llama-3.1-8b-h100, llama-70b-8xh100, or a file (MOCK.md)")
      ->capture_default_str();
  simulate_app
      ->add_option("--retries", simulate.retries,
                   "callers send again so often what they may, as the official SDKs do (those: 2)")
      ->check(whole_number(0, 10))
      ->capture_default_str();
  simulate_app->add_option("--patience", simulate.patience, "callers leave when no content has come by then, as 20s");
  simulate_app->add_option(
      "--fault", simulate.faults,
      "at=WHEN;backend=POOL/NAME;do=kill|stall|slow|storm|flap|recover[;for=DURATION] (repeatable); "
      "POOL/*: all of them; WHEN: 60s, or 1/3 of the arrivals' span; without for= it stays; slow: factor=5; storm: "
      "status=429, retry-after=1s; flap: every=2s");
  simulate_app->add_option("--set", simulate.sets,
                           "PATH=VALUE in the configuration, such as pools.small.queue.requests_max=5 or "
                           "pools.small.backends[0].slots=4 (repeatable)");
  simulate_app->add_option("--attempts", simulate.load.attempts,
                           "when and where each attempt began, and how backends were, as CSV: a file");
  simulate_app->add_option("--seeds", simulate.seeds, "so many runs, from --seed on: means and confidence intervals")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  simulate_app->add_option("--compare", simulate.compare, "another configuration file, played with the same arrivals");
  simulate_app->add_option("--replay", simulate.replay,
                           "an event log of headgate serve: make its calls again and compare every order; needs no "
                           "configuration");
  simulate_app->footer(
      "Examples:\n  headgate simulate config/examples/demo.jsonc --rate 20 --duration 10m --lengths azure-conv "
      "--profile llama-3.1-8b-h100\n"
      "  headgate simulate mine.jsonc --set pools.mock.queue.requests_max=5 --compare mine.jsonc --seeds 5 --rate 8 "
      "--duration 5m\n"
      "  headgate simulate --replay events.log\n"
      "--set changes the first configuration only; --compare is left as it stands in its file.");
  simulate_app->callback([&] {
    want_little_beside_replay(*simulate_app);
    want_no_plan_beside_workload(*simulate_app);
    if (simulate.replay.empty()) want_file(*simulate_app, simulate.config);
    exit_code = loadtest::simulate(simulate);
  });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0 && app.get_subcommands().empty()) return no_subcommand(app);
    return after_printing(app.exit(error) == 0 ? 0 : 2);
  }
  return after_printing(exit_code);
}
