// SHA-256 (FIPS 180-4), for names of cached programs and identities of plugin files.
// What it is not: fast (some 200-300 MB/s); tables in memory use base/hash.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tpu {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  void Update(std::string_view bytes);
  // Ends the message; the object may not be used after.
  Sha256Digest Finish();

 private:
  void Compress(const uint8_t* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block_{};
  uint64_t bytes_ = 0;
};

Sha256Digest Sha256Of(std::string_view bytes);

// 64 lower-case hexadecimal digits.
std::string Hex(const Sha256Digest& digest);

}  // namespace tpu
