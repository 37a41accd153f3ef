// Fast 64-bit hashes of words and of bytes, for tables in memory and as checksums of files.
// What it is not: a proof of equality. Whoever looks something up by it compares the whole key;
// names of files on disk come from base/sha256.h. The values are stable: files hold them.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace tpu {

namespace internal {

// Odd, with 32 bits set each; they keep a run of zero words from multiplying to nothing.
inline constexpr uint64_t kHashA = 0x9e6c63d0a2b54d17u;
inline constexpr uint64_t kHashB = 0xc5a1f0397e8d2b4bu;
inline constexpr uint64_t kHashC = 0x8b72e4d11f95c36du;

// The 128-bit product of the two words, folded to 64 bits: every input bit reaches every output
// bit.
inline uint64_t FoldMultiply(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t LoadWord(const char* from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

}  // namespace internal

inline uint64_t HashCombine(uint64_t hash, uint64_t value) {
  return internal::FoldMultiply(hash ^ internal::kHashA, value ^ internal::kHashB);
}

inline uint64_t HashBytes(std::string_view bytes, uint64_t seed = 0) {
  using namespace internal;  // NOLINT(google-build-using-namespace): three constants
  const char* at = bytes.data();
  size_t left = bytes.size();
  // Two lanes, so that two multiplications are in flight.
  uint64_t lane0 = seed ^ kHashA;
  uint64_t lane1 = seed ^ kHashC;
  while (left >= 32) {
    lane0 = FoldMultiply(LoadWord(at) ^ lane0, LoadWord(at + 8) ^ kHashB);
    lane1 = FoldMultiply(LoadWord(at + 16) ^ lane1, LoadWord(at + 24) ^ kHashC);
    at += 32;
    left -= 32;
  }
  if (left >= 16) {
    lane0 = FoldMultiply(LoadWord(at) ^ lane0, LoadWord(at + 8) ^ kHashB);
    at += 16;
    left -= 16;
  }
  uint64_t tail[2] = {0, 0};
  if (left > 0) std::memcpy(tail, at, left);
  lane1 = FoldMultiply(tail[0] ^ lane1, tail[1] ^ kHashB);
  // The length tells "a" from "a\0".
  return FoldMultiply(FoldMultiply(lane0 ^ kHashC, lane1 ^ kHashB), bytes.size() ^ kHashA);
}

// The same value as HashBytes over the words' bytes.
inline uint64_t HashWords(std::span<const uint64_t> words, uint64_t seed = 0) {
  return HashBytes({reinterpret_cast<const char*>(words.data()), words.size_bytes()}, seed);
}

}  // namespace tpu
