// First byte of a kind in a range, 16 at a time where the processor has SSE2 (every x86-64), else one by one.
//
//   const char* line_end = find_byte<LineEndByte>(begin, end, end);
// `readable` >= end: bytes up to there may be loaded, though only those before `end` count; it saves the slow tail.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace headgate::wire {

inline unsigned char octet(char c) { return static_cast<unsigned char>(c); }

#if defined(__SSE2__)
namespace lanes {
inline __m128i all(int value) { return _mm_set1_epi8(static_cast<char>(value)); }
inline __m128i equal(__m128i bytes, int value) { return _mm_cmpeq_epi8(bytes, all(value)); }
inline __m128i at_most(__m128i bytes, int value) { return _mm_cmpeq_epi8(_mm_min_epu8(bytes, all(value)), bytes); }
inline __m128i load(const char* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
}  // namespace lanes
#endif

// CR or LF.
struct LineEndByte {
  static bool is(unsigned char c) { return c == '\n' || c == '\r'; }
#if defined(__SSE2__)
  static __m128i mark(__m128i b) { return _mm_or_si128(lanes::equal(b, '\n'), lanes::equal(b, '\r')); }
#endif
};

// What no header line may hold: controls but the tab.
struct ControlByte {
  static bool is(unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; }
#if defined(__SSE2__)
  static __m128i mark(__m128i b) {
    const __m128i low = _mm_andnot_si128(lanes::equal(b, '\t'), lanes::at_most(b, 0x1f));
    return _mm_or_si128(low, lanes::equal(b, 0x7f));
  }
#endif
};

// What is neither a letter, a digit nor '-', the bytes that nearly all header names consist of.
struct RareNameByte {
  static bool is(unsigned char c) {
    const unsigned folded = c | 0x20u;
    return !((folded >= 'a' && folded <= 'z') || (c >= '0' && c <= '9') || c == '-');
  }
#if defined(__SSE2__)
  static __m128i mark(__m128i b) {
    const __m128i letter = lanes::at_most(_mm_sub_epi8(_mm_or_si128(b, lanes::all(0x20)), lanes::all('a')), 25);
    const __m128i digit = lanes::at_most(_mm_sub_epi8(b, lanes::all('0')), 9);
    return _mm_andnot_si128(_mm_or_si128(_mm_or_si128(letter, digit), lanes::equal(b, '-')), lanes::all(0xff));
  }
#endif
};

// What ends a run of plain bytes inside a JSON string.
struct JsonStringByte {
  static bool is(unsigned char c) { return c < 0x20 || c == '"' || c == '\\'; }
#if defined(__SSE2__)
  static __m128i mark(__m128i b) {
    return _mm_or_si128(_mm_or_si128(lanes::equal(b, '"'), lanes::equal(b, '\\')), lanes::at_most(b, 0x1f));
  }
#endif
};

// `end` if there is none.
template <class Kind>
inline const char* find_byte(const char* at, const char* end, [[maybe_unused]] const char* readable) {
#if defined(__SSE2__)
  while (at < end && readable - at >= 16) {
    const auto marks = static_cast<std::uint32_t>(_mm_movemask_epi8(Kind::mark(lanes::load(at))));
    if (marks != 0) {
      const char* hit = at + std::countr_zero(marks);
      return hit < end ? hit : end;
    }
    at += 16;
    // A long run: 64 at a time as long as none of them is marked.
    while (end - at >= 64) {
      const __m128i first = _mm_or_si128(Kind::mark(lanes::load(at)), Kind::mark(lanes::load(at + 16)));
      const __m128i second = _mm_or_si128(Kind::mark(lanes::load(at + 32)), Kind::mark(lanes::load(at + 48)));
      if (_mm_movemask_epi8(_mm_or_si128(first, second)) != 0) break;
      at += 64;
    }
  }
#endif
  while (at < end && !Kind::is(octet(*at))) ++at;
  return at < end ? at : end;
}

}  // namespace headgate::wire
