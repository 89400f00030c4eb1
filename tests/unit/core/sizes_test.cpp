// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/sizes.h"

#include <gmock/gmock.h>

#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>

#include "core/error.h"
#include "core/shape.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

TEST(Sizes, ProductWithinTheLimit) {
  EXPECT_EQ(product_up_to(24, {2, 3, 4}), 24);
  EXPECT_EQ(product_up_to(23, {2, 3, 4}), std::nullopt);
  EXPECT_EQ(product_up_to(kMost, {kMost, 1}), kMost);
  EXPECT_EQ(product_up_to(kMost, {std::int64_t{1} << 61, 4}), std::nullopt);
  EXPECT_EQ(product_up_to(kMost, {std::int64_t{1} << 32, std::int64_t{1} << 32}), std::nullopt);
  EXPECT_EQ(product_up_to(kMost, {kMost, kMost, 0}), 0);
  EXPECT_EQ(product_up_to(1, {}), 1);
}

TEST(Sizes, Text) {
  EXPECT_EQ(size_text(24), "24 bytes");
  EXPECT_EQ(size_text(3.14e6), "3.1 MB");
  EXPECT_EQ(size_text(4.0 * kMaxElements), "4.4 TB");
}

TEST(Sizes, ShapeDoesNotWrap) {
  try {
    const Shape shape{std::int64_t{1} << 32, std::int64_t{1} << 32, 3};
    FAIL() << shape.num_elements();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_THAT(error.what(), HasSubstr("a tensor of 4294967296x4294967296x3 would take 221.4 EB"));
  }
}

TEST(Sizes, AllocationNamesWhatItIsFor) {
  const auto message = [](auto body) {
    try {
      allocate_for("the activations", body, "a.yaml:3:5");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message([] { throw std::bad_alloc(); }),
              HasSubstr("a.yaml:3:5: no memory for the activations"));
  EXPECT_THAT(message([] { throw Error(ErrorKind::device, "out of memory: 3 MB"); }),
              HasSubstr("no memory for the activations: out of memory: 3 MB"));
  EXPECT_EQ(message([] { throw Error(ErrorKind::device, "no such device"); }), "no such device");
  EXPECT_EQ(message([] {}), "");
}

TEST(Sizes, ReadingNamesItsFileAndNoBatch) {
  const auto error = [](auto body) -> std::optional<Error> {
    try {
      read_into_memory([] { return std::string("a.csv"); }, body);
    } catch (const Error& caught) {
      return caught;
    }
    return std::nullopt;
  };
  for (const auto& found :
       {error([] { throw std::bad_alloc(); }), error([] { throw std::length_error("vector"); }),
        error([] { throw Error(ErrorKind::device, "out of memory: 3 MB; use a smaller batch"); })}) {
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->kind(), ErrorKind::data);
    EXPECT_EQ(found->where(), "a.csv");
    EXPECT_THAT(found->what(), HasSubstr("needs more memory to be read than there is"));
    EXPECT_THAT(found->what(), Not(HasSubstr("batch")));
  }
  EXPECT_EQ(error([] { throw Error(ErrorKind::config, "other"); })->what_happened(), "other");
  EXPECT_FALSE(error([] {}).has_value());
}

}  // namespace
}  // namespace lockstep
