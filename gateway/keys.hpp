// Who calls: from the head's Authorization: Bearer or x-api-key to a key of the configuration. Only digests are kept
// and compared (SHA-256, every key, in constant time).
//
//   Caller caller = ring.identify(head.fields, *catalog, memo);   // memo: one per connection
//   if (caller.verdict != Verdict::known && ..)                   // refusal, or:
//   if (!caller.identity.may_use(route.id)) ..
//
// An Identity points into the catalog it was made from and lives no longer. Where anonymous callers are allowed and the
// configuration has no key at all, any key is accepted as none (client libraries insist on sending one).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backends/wire/head.hpp"
#include "config/catalog.hpp"
#include "gateway/refusal.hpp"

namespace headgate::gateway {

class Identity {
 public:
  Identity() = default;  // anonymous: every route
  explicit Identity(const config::Key* key) : key_(key) {}
  bool anonymous() const { return key_ == nullptr; }
  std::string_view name() const { return key_ ? std::string_view(key_->name) : std::string_view(); }
  bool may_use(policies::RouteId route) const;
  policies::TenantId tenant() const { return key_ ? key_->tenant : policies::TenantId{}; }
  std::atomic<std::uint64_t>* body_bytes() const { return key_ ? key_->body_bytes.get() : nullptr; }  // null: anonymous

 private:
  const config::Key* key_ = nullptr;
};

struct Caller {
  enum class Verdict : std::uint8_t { known, anonymous, wrong_key, bad_header };
  Verdict verdict = Verdict::wrong_key;
  Identity identity;         // of known and anonymous
  std::string_view problem;  // of bad_header: static text
  std::string_view header;   // of bad_header: its name

  bool ok() const { return verdict == Verdict::known || verdict == Verdict::anonymous; }
  RefusalAnswer refusal() const;  // of wrong_key and bad_header
};

// The last key text of one connection and what it was, so that keep-alive callers are hashed once. Forgotten when the
// configuration changes; texts over 512 bytes are not remembered.
class KeyMemo {
 private:
  friend class KeyRing;
  std::string text_;
  std::uint64_t version_ = 0;
  std::uint32_t key_ = 0;  // its place in Catalog::keys
  bool set_ = false;
};

// Not thread-safe (it owns a hashing context): one per shard.
class KeyRing {
 public:
  KeyRing();
  ~KeyRing();
  KeyRing(const KeyRing&) = delete;
  KeyRing& operator=(const KeyRing&) = delete;

  Caller identify(std::span<const wire::Field> fields, const config::Catalog& catalog, KeyMemo& memo);
  std::uint64_t hashed() const { return hashed_; }  // digests made so far

 private:
  struct Hash;
  std::unique_ptr<Hash> hash_;
  std::uint64_t hashed_ = 0;
};

}  // namespace headgate::gateway
