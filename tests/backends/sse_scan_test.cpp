#include "backends/wire/sse_scan.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

namespace headgate::wire {
namespace {

using namespace std::string_literals;

// Feeds a stream in pieces of `step` bytes, as a relay would, and gives back its events and what is left of it.
std::vector<std::string> split(const std::string& stream, std::size_t step, std::string& rest) {
  std::vector<std::string> events;
  EventEnd end;
  rest.clear();
  for (std::size_t at = 0; at < stream.size(); at += step) {
    rest += stream.substr(at, step);
    while (const std::size_t size = end.find(rest)) {
      events.push_back(rest.substr(0, size));
      rest.erase(0, size);
    }
  }
  return events;
}

TEST(EventEnd, IsAnEmptyLineOfAnyKind) {
  for (const std::string line_end : {"\n", "\r\n", "\r"}) {
    const std::string first = "data: a" + line_end + "data: b" + line_end + line_end;
    const std::string second = ": c" + line_end + line_end;
    std::string rest;
    EXPECT_EQ(split(first + second + "data: d", 1000, rest), (std::vector<std::string>{first, second}));
    EXPECT_EQ(rest, "data: d");
  }
}

TEST(EventEnd, MayMixLineEnds) {
  for (const std::string event : {"data: a\r\n\n", "data: a\n\r\n", "data: a\r\n\r\n", "data: a\n\n", "data: a\r\r",
                                  "data: a\n\r", "data: a\rb: c\n\r\n"}) {
    EventEnd end;
    EXPECT_EQ(end.find(event + "data: b\n\n"), event.size()) << event;
  }
}

TEST(EventEnd, IsNotALineEndAlone) {
  EventEnd end;
  for (const std::string part : {"data: a", "data: a\n", "data: a\r\n", "data: a\r\ndata: b\r\n", "data: a\r", ""}) {
    end.reset();
    EXPECT_EQ(end.find(part), 0u) << part;
  }
}

// An event that ends in CR LF CR is handed out at once; the LF that follows is an empty event.
TEST(EventEnd, DoesNotWaitForTheLastLineFeed) {
  EventEnd end;
  EXPECT_EQ(end.find("data: a\r\n\r"), 10u);
  EXPECT_EQ(end.find("\ndata: b\r\n\r\n"), 1u);
  EXPECT_EQ(end.find("data: b\r\n\r\n"), 11u);
  EXPECT_TRUE(read_event("\n").comment_only);
}

TEST(EventEnd, GivesTheSameBytesAndDataHoweverTheStreamIsCut) {
  const std::vector<std::string> data = {
      R"({"choices":[{"delta":{"content":"añ漢🙂"}}]})", R"({"choices":[{"delta":{},"finish_reason":"stop"}]})",
      R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5}})", "[DONE]"};
  for (const std::string line_end : {"\n", "\r\n", "\r"}) {
    for (const std::string prefix : {"data: ", "data:", ": hb\nevent: x\nid: 1\ndata: "}) {
      std::string stream = "\xef\xbb\xbf";
      for (const std::string& text : data) stream += prefix + text + line_end + line_end;
      for (std::size_t step = 1; step <= stream.size(); ++step) {
        std::string rest, joined;
        int content = 0, finish = 0, usage = 0, done = 0;
        for (const std::string& event : split(stream, step, rest)) {
          joined += event;
          const EventFacts facts = read_event(event);
          EXPECT_FALSE(facts.malformed) << event;
          content += facts.content;
          finish += facts.finish;
          done += facts.done;
          usage += facts.usage && facts.tokens.input == 7 && facts.tokens.output == 5;
        }
        EXPECT_EQ(joined + rest, stream);
        EXPECT_EQ(content + finish * 10 + usage * 100 + done * 1000, 1111) << step;
      }
    }
  }
}

TEST(EventEnd, FindsTheSameInAnyTwoPieces) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string stream;
    for (int i = 0; i < 24; ++i) stream += "\n\rdx"[random() % 4];
    stream += "\n\n";
    std::string rest;
    EventEnd whole;
    const std::size_t size = whole.find(stream);
    for (std::size_t cut = 0; cut < size; ++cut) {
      EventEnd end;
      std::size_t found = end.find(std::string_view(stream).substr(0, cut));
      if (found == 0) found = end.find(stream);
      // found early only between the CR and the LF of the empty line
      const bool early = found == size - 1 && cut == found && stream[size - 1] == '\n' && stream[size - 2] == '\r';
      EXPECT_TRUE(found == size || early) << cut;
    }
  }
}

struct ScanCase {
  std::string data;
  std::string facts;  // the names of those that are set, in the order of EventFacts
};

std::string names_of(const EventFacts& facts) {
  std::string names;
  const std::pair<bool, const char*> all[] = {{facts.comment_only, "comment_only"},
                                              {facts.done, "done"},
                                              {facts.error, "error"},
                                              {facts.overloaded, "overloaded"},
                                              {facts.content, "content"},
                                              {facts.finish, "finish"},
                                              {facts.usage, "usage"},
                                              {facts.usage_only, "usage_only"},
                                              {facts.malformed, "malformed"}};
  for (const auto& [set, name] : all) names += set ? (names.empty() ? "" : " ") + std::string(name) : "";
  return names;
}

void check(const std::vector<ScanCase>& cases) {
  for (const ScanCase& c : cases) EXPECT_EQ(names_of(read_event("data: " + c.data + "\n\n")), c.facts) << c.data;
}

TEST(ReadEvent, TellsContentFromItsFrame) {
  check({
      {R"({"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]})", ""},
      {R"({"choices":[{"delta":{"role":"assistant","content":""}}]})", ""},
      {R"({"choices":[{"delta":{"content":null,"refusal":null,"tool_calls":null,"audio":null}}]})", ""},
      {R"({"choices":[{"delta":{"tool_calls":[],"audio":{},"function_call":{}}}]})", ""},
      {R"({"choices":[{"delta":{"content":"x"}}]})", "content"},
      {R"({"choices":[{"delta":{"content":" "}}]})", "content"},
      {R"({"choices":[{"delta":{"content":[{"type":"text","text":"x"}]}}]})", "content"},
      {R"({"choices":[{"delta":{"refusal":"x"}}]})", "content"},
      {R"({"choices":[{"delta":{"reasoning":"x"}}]})", "content"},
      {R"({"choices":[{"delta":{"reasoning_content":"x"}}]})", "content"},
      {R"({"choices":[{"delta":{"audio":{"data":"x"}}}]})", "content"},
      {R"({"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}]}}]})", "content"},
      {R"({"choices":[{"delta":{"function_call":{"name":"x"}}}]})", "content"},
      {R"({"choices":[{"text":"x","logprobs":null}]})", "content"},
      {R"({"choices":[{"text":""}]})", ""},
      {R"({"choices":[{"delta":{"content":""}},{"index":1,"delta":{"content":"x"}}]})", "content"},
      {R"({"choices":[{"delta":{"content":"x"}},{"index":1,"delta":{"content":""}}]})", "content"},
      {R"({"choices":[{"delta":{},"finish_reason":"stop"}]})", "finish"},
      {R"({"choices":[{"delta":{},"finish_reason":""}]})", ""},
      {R"({"choices":[{"delta":{"content":"x"},"finish_reason":"length"}]})", "content finish"},
      {R"({"choices":[{"delta":null}]})", ""},
      {R"({"choices":null})", ""},
      {R"({"choices":[null,1,"x",[]]})", ""},
  });
}

TEST(ReadEvent, IsNotFooledByNamesInOtherPlaces) {
  check({
      {R"({"content":"x","text":"x","delta":{"content":"x"},"finish_reason":"stop"})", ""},
      {R"({"choices":[{"logprobs":{"content":[{"token":"x"}],"text":"y","finish_reason":"z"},"delta":{}}]})", ""},
      {R"({"choices":[{"delta":{"extra":{"content":"x"}}}]})", ""},
      {R"({"choices":[{"content":"x","error":{"code":1},"usage":{"prompt_tokens":1}}]})", ""},
      {R"({"a":{"error":{"type":"overloaded"},"usage":{"prompt_tokens":1},"choices":[{"text":"x"}]}})", ""},
      {R"({"a":"\"error\":{}, \"usage\":{\"prompt_tokens\":1}"})", ""},
      {R"({"a":"}]}\\","choices":[{"delta":{"content":"{\"error\":1}"}}]})", "content"},
      {"{ \"choices\" :\t[ { \"delta\" : { \"content\" : \"x\" } } ] } ", "content"},
      {R"({"\u0063hoices":[{"d\u0065lta":{"c\u006fntent":"x"}}]})", "content"},
      {R"({"err\u006fr":{"c\u006fde":"x"}})", "error"},
      {R"({"Choices":[{"text":"x"}]})", ""},
  });
}

TEST(ReadEvent, SeesErrorsInBand) {
  check({
      {R"({"error":null,"choices":[{"delta":{"content":"x"}}]})", "content"},
      {R"({"error":{"message":"x"}})", "error"},
      {R"({"error":{}})", "error"},
      {R"({"error":"out of memory"})", "error"},
      {R"({"error":"server overloaded"})", "error overloaded"},
      {R"({"error":""})", ""},
      {R"({"error":false})", ""},
      {R"({"error":{"message":"overloaded"}})", "error"},
      {R"({"error":{"type":"overloaded_error","message":"x"}})", "error overloaded"},
      {R"({"error":{"code":"overloaded"}})", "error overloaded"},
      {R"({"error":{"code":"Rate_Limit_exceeded","type":null}})", "error overloaded"},
      {R"({"error":{"code":429}})", "error overloaded"},
      {R"({"error":{"code":"503"}})", "error overloaded"},
      {R"({"error":{"code":500}})", "error"},
      {R"({"error":{"inner":{"type":"overloaded"}}})", "error"},
  });
}

TEST(ReadEvent, TellsDoneCommentsAndRubbish) {
  check({
      {"[DONE]", "done"},
      {" [DONE] ", "done"},
      {"[done]", "malformed"},
      {"", "comment_only"},
      {"{", "malformed"},
      {"{}", ""},
      {"{}x", "malformed"},
      {"{} {}", "malformed"},
      {"hello", "malformed"},
      {"5", ""},
      {"null", ""},
      {R"({"choices":[{"text":"x"}])", "malformed"},
      {R"({"a":01})", "malformed"},
      {R"({"a":"\x"})", "malformed"},
      {R"({"a":1,})", "malformed"},
      {R"({"usage":{"prompt_tokens":1}}})", "malformed"},
  });
  for (const std::string event : {": hb\n\n", "\n", "", "event: ping\nid: 7\nretry: 10\n\n", "\r\n", "database: x\n\n",
                                  "data : x\n\n", " data: x\n\n", "Data: x\n\n", "data\n\n"}) {
    EXPECT_EQ(names_of(read_event(event)), "comment_only") << event;
  }
}

TEST(ReadEvent, FindsDataInEveryForm) {
  const std::string content = R"({"choices":[{"text":"x"}]})";
  for (const std::string& event : std::vector<std::string>{
           "data:" + content + "\n\n", "data: " + content, "data: " + content + "\r\n\r",
           "\xef\xbb\xbf"
           "data: " +
               content + "\n\n",
           "\ndata: " + content + "\n\n", ": c\nevent: message\ndata: " + content + "\nid: 1\n\n",
           "data: {\"choices\":\ndata: [{\"text\":\"x\"}\ndata:]}\n\n"s,
           "data: {\"choices\":\rdata: [{\"text\":\"x\"}]}\r\r"s, "data:\ndata: " + content + "\ndata\n\n"}) {
    EXPECT_EQ(names_of(read_event(event)), "content") << event;
  }
  EXPECT_EQ(names_of(read_event("data: {\"choices\":[{\"text\":\"x\ndata: y\"}]}\n\n")), "malformed");
  EXPECT_EQ(names_of(read_event("data: {\"a\":1\ndata: 2}\n\n")), "malformed");
}

struct UsageCase {
  std::string data;
  bool usage, only;
  std::uint32_t input, output, cached;
};

TEST(ReadEvent, CountsWhatUsageSays) {
  const std::vector<UsageCase> cases = {
      {R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}})", true, true, 7, 5, 0},
      {R"({"usage":{"prompt_tokens":7,"completion_tokens":5},"choices":[]})", true, true, 7, 5, 0},
      {R"({"choices":[{"delta":{}}],"usage":{"prompt_tokens":7,"completion_tokens":5}})", true, false, 7, 5, 0},
      {R"({"usage":{"prompt_tokens":7,"completion_tokens":5}})", true, false, 7, 5, 0},
      {R"({"choices":[],"usage":null})", false, false, 0, 0, 0},
      {R"({"choices":[],"usage":{}})", false, false, 0, 0, 0},
      {R"({"choices":[],"usage":{"prompt_tokens":null}})", false, false, 0, 0, 0},
      {R"({"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}})", true, true, 0, 0, 0},
      {R"({"usage":{"input_tokens":3,"output_tokens":4,"input_tokens_details":{"cached_tokens":2}}})", true, false, 3,
       4, 2},
      {R"({"usage":{"prompt_tokens":9,"prompt_tokens_details":{"audio_tokens":1,"cached_tokens":8}}})", true, false, 9,
       0, 8},
      {R"({"usage":{"prompt_tokens":9,"prompt_tokens_details":null}})", true, false, 9, 0, 0},
      {R"({"usage":{"prompt_tokens":9,"other":{"completion_tokens":8}}})", true, false, 9, 0, 0},
      {R"({"usage":{"prompt_tokens":7.0,"completion_tokens":99999999999}})", true, false, 7, 0xffffffffu, 0},
      {R"({"usage":{"prompt_tokens":-1,"completion_tokens":"5"}})", false, false, 0, 0, 0},
      {R"({"usage":[1]})", false, false, 0, 0, 0},
  };
  for (const UsageCase& c : cases) {
    const EventFacts facts = read_event("data: " + c.data + "\n\n");
    EXPECT_FALSE(facts.malformed) << c.data;
    EXPECT_EQ(facts.usage, c.usage) << c.data;
    EXPECT_EQ(facts.usage_only, c.only) << c.data;
    EXPECT_EQ(facts.tokens.input, c.input) << c.data;
    EXPECT_EQ(facts.tokens.output, c.output) << c.data;
    EXPECT_EQ(facts.tokens.cached, c.cached) << c.data;
    const AnswerFacts answer = read_answer(c.data);
    EXPECT_TRUE(answer.json) << c.data;
    EXPECT_EQ(answer.usage, c.usage) << c.data;
    EXPECT_EQ(answer.tokens.output, c.output) << c.data;
  }
}

bool same(const EventFacts& a, const EventFacts& b) {
  const auto flags = [](const EventFacts& f) {
    return std::tuple(f.comment_only, f.done, f.error, f.overloaded, f.content, f.finish, f.usage, f.usage_only,
                      f.malformed, f.tokens.input, f.tokens.output, f.tokens.cached);
  };
  return flags(a) == flags(b);
}

// Streams whose events differ in their text, now and then in more, some of them broken: it says what read_event says.
TEST(EventReader, SaysWhatReadEventSays) {
  std::mt19937_64 random(5);
  const std::vector<std::string> texts{"word ", "a",   "",   "\u00e9", "\"}",    "\n",  "\\\\n",
                                       "\\\"",  "}]}", "\\", "\x01",   "data: ", "null"};
  const std::vector<std::string> frames{
      R"({"id":"1","choices":[{"index":0,"delta":{"content":"@"},"finish_reason":null}]})",
      R"({"choices":[{"delta":{"content":"@"},"finish_reason":"stop"}]})",
      R"({"choices":[{"text":"@"}],"usage":{"prompt_tokens":3}})",
      R"({"choices":[{"delta":{"reasoning":"@","content":"more"}},{"delta":{"content":"@"}}]})",
      R"({"error":{"code":"@"}})",
      R"({"choices":[{"delta":{"tool_calls":["@"]}}]})"};
  EventReader reader;
  int contents = 0;
  for (int round = 0; round < 50000; ++round) {
    std::string data = frames[random() % 20 < 15 ? 0 : random() % frames.size()];
    for (std::size_t at = data.find('@'); at != std::string::npos; at = data.find('@'))
      data.replace(at, 1, texts[random() % texts.size()]);
    if (random() % 50 == 0) data.erase(random() % data.size(), 1);
    if (random() % 50 == 0) data.insert(random() % data.size(), random() % 2 == 0 ? "\ndata: " : "\n");
    const std::string event = "data: " + data + "\n\n";
    const EventFacts facts = reader.read(event);
    ASSERT_TRUE(same(facts, read_event(event))) << event;
    if (!facts.text.empty()) {
      ASSERT_NE(event.find(facts.text), std::string::npos);
    }
    contents += facts.content;
  }
  EXPECT_GT(contents, 10000);
}

TEST(ReadAnswer, TellsJsonErrorsAndUsage) {
  EXPECT_FALSE(read_answer("").json);
  EXPECT_FALSE(read_answer("<html>").json);
  EXPECT_FALSE(read_answer(R"({"choices":[{"message":{"content":"x)").json);
  EXPECT_FALSE(read_answer(R"({"usage":{"prompt_tokens":7}} x)").usage);
  EXPECT_TRUE(read_answer("[1]\n").json);
  const AnswerFacts error = read_answer(R"( {"error":{"message":"x","type":"overloaded_error"}} )");
  EXPECT_TRUE(error.json && error.error && error.overloaded && !error.usage);
  const AnswerFacts good = read_answer(R"({"choices":[{"message":{"content":"\"error\":1"}}],"error":null})");
  EXPECT_TRUE(good.json && !good.error);
}

// Numbers too large for a double pass here and not there.
bool overflows(const std::string& text) { return std::regex_search(text, std::regex("[eE]\\+?[0-9]{3}")); }

TEST(ReadAnswer, AcceptsExactlyWhatJsonIs) {
  std::mt19937_64 random(11);
  const std::string alphabet = "{}[]:,\"\\/ \n\t0123456789-+.eEtruefalsnbu\x01x";
  const std::string base = R"({"a":[1,-2.5e+3,0,true,false,null,"x\n\u00e9"],"usage":{"prompt_tokens":7}, "b" : {} })";
  int valid = 0;
  for (int round = 0; round < 40000; ++round) {
    std::string text = base;
    for (std::uint64_t edits = random() % 3; edits > 0; --edits) {
      const char c = alphabet[random() % alphabet.size()];
      const std::size_t at = random() % text.size();
      if (random() % 3 == 0) {
        text.erase(at, 1);
      } else {
        random() % 2 == 0 ? text[at] = c : *text.insert(text.begin() + static_cast<std::ptrdiff_t>(at), c) = c;
      }
    }
    const bool accepted = read_answer(text).json;
    const bool theirs = nlohmann::json::accept(text);
    if (accepted && !theirs && overflows(text)) continue;
    ASSERT_EQ(accepted, theirs) << text;
    valid += accepted;
  }
  EXPECT_GT(valid, 1000);
}

}  // namespace
}  // namespace headgate::wire
