// The 64-bit hash: stable values, no collisions where tables would feel them, every bit counts.
#include "base/hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

namespace tpu {
namespace {

TEST(Hash, WordsAreBytes) {
  std::mt19937_64 random(1);
  for (size_t n = 0; n < 40; ++n) {
    std::vector<uint64_t> words(n);
    for (uint64_t& word : words) word = random();
    const std::string bytes(reinterpret_cast<const char*>(words.data()), n * 8);
    EXPECT_EQ(HashWords(words, 7), HashBytes(bytes, 7));
  }
}

// Files on disk hold hashes: another function needs another version of their format.
TEST(Hash, ValuesAreFixed) {
  EXPECT_EQ(HashBytes(""), 13058428850120675020u);
  EXPECT_EQ(HashBytes("program"), 4593532584205203354u);
  EXPECT_EQ(HashBytes(std::string(100, 'x'), 5), 9425315061949288690u);
}

TEST(Hash, LengthCounts) {
  std::unordered_set<uint64_t> seen;
  for (size_t n = 0; n < 1000; ++n)
    EXPECT_TRUE(seen.insert(HashBytes(std::string(n, '\0'))).second);
}

TEST(Hash, SmallKeysDontCollide) {
  // Keys as the program cache makes them: few words, small numbers.
  std::unordered_set<uint64_t> seen;
  std::unordered_set<uint64_t> low;
  for (uint64_t a = 0; a < 64; ++a) {
    for (uint64_t b = 0; b < 64; ++b) {
      for (uint64_t c = 0; c < 64; ++c) {
        const uint64_t words[] = {a, b, c, 0, a};
        const uint64_t hash = HashWords(words);
        EXPECT_TRUE(seen.insert(hash).second);
        low.insert(hash & 0xfffff);
      }
    }
  }
  // 2^18 keys in 2^20 buckets: 1 - 1/e^(1/4) of the buckets are hit if the low bits are random.
  EXPECT_NEAR(static_cast<double>(low.size()), 231944, 1500);
}

TEST(Hash, EveryBitFlipsHalfOfTheResult) {
  std::mt19937_64 random(2);
  for (size_t n : {1, 8, 15, 16, 17, 31, 32, 33, 64, 100}) {
    std::string bytes(n, 0);
    for (char& byte : bytes) byte = static_cast<char>(random());
    const uint64_t before = HashBytes(bytes);
    double flipped = 0;
    for (size_t bit = 0; bit < n * 8; ++bit) {
      bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
      const int bits = std::popcount(before ^ HashBytes(bytes));
      EXPECT_GE(bits, 8) << n << " " << bit;
      flipped += bits;
      bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
    }
    EXPECT_NEAR(flipped / static_cast<double>(n * 8), 32, 6) << n;
  }
}

TEST(Hash, SeedsGiveOtherHashes) {
  EXPECT_NE(HashBytes("program", 0), HashBytes("program", 1));
  EXPECT_NE(HashCombine(1, 2), HashCombine(2, 1));
}

}  // namespace
}  // namespace tpu
