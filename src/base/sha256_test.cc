// SHA-256 against the standard's examples, and in pieces against whole.
#include "base/sha256.h"

#include <gtest/gtest.h>

namespace tpu {
namespace {

TEST(Sha256, Examples) {
  EXPECT_EQ(Hex(Sha256Of("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Hex(Sha256Of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Hex(Sha256Of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Hex(Sha256Of(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesAreTheWhole) {
  std::string text;
  for (int n = 0; n < 300; ++n) {
    Sha256 pieces;
    for (size_t at = 0; at < text.size(); at += 1 + at % 70) {
      pieces.Update(std::string_view(text).substr(at, 1 + at % 70));
    }
    EXPECT_EQ(pieces.Finish(), Sha256Of(text)) << n;
    text += static_cast<char>(n * 7);
  }
}

}  // namespace
}  // namespace tpu
