#include "gateway/keys.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <new>
#include <optional>

namespace headgate::gateway {
namespace {

constexpr std::size_t memo_text_max = 512;

struct Given {
  std::optional<std::string_view> text;  // of the key; absent: none was sent
  std::string_view problem, header;
};

// "Bearer KEY" -> KEY; anything else is taken whole, so that it is a wrong key and never no key.
std::string_view bearer_of(std::string_view value) {
  constexpr std::string_view scheme = "Bearer";
  if (value.size() <= scheme.size() || value[scheme.size()] != ' ') return value;
  if (!wire::equals_ignoring_case(value.substr(0, scheme.size()), scheme)) return value;
  value.remove_prefix(scheme.size());
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  return value;
}

Given key_in(std::span<const wire::Field> fields) {
  std::optional<std::string_view> bearer, api_key;
  for (const wire::Field& field : fields) {
    if (field.id == wire::Name::authorization) {
      if (bearer) return {{}, "Authorization is sent twice", "authorization"};
      bearer = bearer_of(field.value);
    } else if (field.id == wire::Name::x_api_key) {
      if (api_key && *api_key != field.value) return {{}, "x-api-key is sent twice with two keys", "x-api-key"};
      api_key = field.value;
    }
  }
  if (bearer && api_key && *bearer != *api_key) return {{}, "Authorization and x-api-key hold two keys", "x-api-key"};
  return {bearer ? bearer : api_key, {}, {}};
}

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

bool Identity::may_use(policies::RouteId route) const {
  return key_ == nullptr || key_->every_route || std::binary_search(key_->routes.begin(), key_->routes.end(), route);
}

RefusalAnswer Caller::refusal() const {
  RefusalAnswer answer;
  answer.refusal = verdict == Verdict::bad_header ? Refusal::invalid_header : Refusal::invalid_api_key;
  answer.detail = problem;
  answer.param = header;
  return answer;
}

struct KeyRing::Hash {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  // Fetched once: EVP_sha256() looks its implementation up again at each digest.
  EVP_MD* sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);

  Hash() {
    if (context == nullptr || sha256 == nullptr) throw std::bad_alloc();
  }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;
  ~Hash() {
    EVP_MD_CTX_free(context);
    EVP_MD_free(sha256);
  }
  bool digest(std::string_view text, std::array<std::uint8_t, 32>& out) {
    return EVP_DigestInit_ex2(context, sha256, nullptr) == 1 &&
           EVP_DigestUpdate(context, text.data(), text.size()) == 1 &&
           EVP_DigestFinal_ex(context, out.data(), nullptr) == 1;
  }
};

KeyRing::KeyRing() : hash_(std::make_unique<Hash>()) {}
KeyRing::~KeyRing() = default;

Caller KeyRing::identify(std::span<const wire::Field> fields, const config::Catalog& catalog, KeyMemo& memo) {
  using Verdict = Caller::Verdict;
  const Given given = key_in(fields);
  if (!given.problem.empty()) return {Verdict::bad_header, {}, given.problem, given.header};
  if (catalog.options.listen.allow_anonymous && (!given.text || catalog.keys.empty()))
    return {Verdict::anonymous, {}, {}, {}};
  if (!given.text) return {};
  const std::string_view text = *given.text;
  if (memo.set_ && memo.version_ == catalog.version && same(memo.text_, text)) {
    return {Verdict::known, Identity(&catalog.keys[memo.key_]), {}, {}};
  }
  std::array<std::uint8_t, 32> digest{};
  ++hashed_;
  if (!hash_->digest(text, digest)) return {};
  const config::Key* found = nullptr;
  for (const config::Key& key : catalog.keys) {  // all of them: the time says nothing about which one it was
    if (CRYPTO_memcmp(key.sha256.data(), digest.data(), digest.size()) == 0 && found == nullptr) found = &key;
  }
  if (found == nullptr) return {};
  memo.set_ = text.size() <= memo_text_max;
  if (memo.set_) {
    memo.text_.assign(text);
    memo.version_ = catalog.version;
    memo.key_ = static_cast<std::uint32_t>(found - catalog.keys.data());
  }
  return {Verdict::known, Identity(found), {}, {}};
}

}  // namespace headgate::gateway
