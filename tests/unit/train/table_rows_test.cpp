// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A gradient travels as rows and arrives bit for bit; where that is not shorter, it does not.
#include "train/table_rows.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>

#include "core/error.h"

namespace lockstep {
namespace {

using Table = TableRows::Table;

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

/// Packs and unpacks. Returns the bytes.
std::size_t there_and_back(const TableRows& rows, const std::vector<float>& values) {
  std::vector<std::byte> packed(values.size() * sizeof(float));
  const std::size_t bytes = rows.pack(values.data(), packed.data());
  if (bytes == 0) return 0;
  std::vector<float> back(values.size(), 7.0F);
  rows.unpack(packed.data(), bytes, back.data());
  EXPECT_EQ(bits_of(values), bits_of(back));
  return bytes;
}

TEST(TableRows, OnlyRowsThatAreNotZeroTravel) {
  // 3 elements, a table of 10 x 4, 5 elements, a table of 6 x 2.
  const TableRows rows(60, {{3, 10, 4}, {48, 6, 2}});
  std::vector<float> values(60);
  EXPECT_EQ(there_and_back(rows, values), (8 + 2) * 4U);
  values[0] = 1.5F;
  values[3 + 4 * 9 + 3] = -2.0F;  // the last of the first table
  values[3 + 4 * 2] = -0.0F;      // not 0
  values[48] = std::numeric_limits<float>::quiet_NaN();
  values[47] = 4.0F;
  EXPECT_EQ(there_and_back(rows, values), (8 + 1 + 2 * 5 + 1 + 3) * 4U);
}

TEST(TableRows, ManyRowsTravelWhole) {
  const TableRows rows(40, {{0, 10, 4}});
  std::vector<float> values(40, 1.0F);
  EXPECT_EQ(there_and_back(rows, values), 0U);
  for (int row = 0; row < 3; ++row) std::fill_n(values.begin() + 4 * row, 4, 0.0F);
  EXPECT_EQ(there_and_back(rows, values), (1 + 7 * 5) * 4U);
}

TEST(TableRows, RandomTables) {
  std::mt19937 generator(5);
  for (int i = 0; i < 200; ++i) {
    std::vector<Table> tables;
    std::int64_t elements = static_cast<std::int64_t>(generator() % 9);
    for (auto left = generator() % 4; left > 0; --left) {
      const Table table{elements, 1 + static_cast<std::int64_t>(generator() % 30),
                        1 + static_cast<std::int64_t>(generator() % 9)};
      tables.push_back(table);
      elements += table.rows * table.width + static_cast<std::int64_t>(generator() % 9);
    }
    std::vector<float> values(static_cast<std::size_t>(elements));
    for (float& value : values) value = generator() % 20 == 0 ? static_cast<float>(generator()) : 0.0F;
    there_and_back(TableRows(elements, tables), values);
  }
}

TEST(TableRows, WhatIsNoPackedFormIsAnError) {
  const TableRows rows(40, {{0, 10, 4}});
  std::vector<float> values(40);
  values[5] = 1;
  std::vector<std::byte> packed(160);
  const std::size_t bytes = rows.pack(values.data(), packed.data());
  ASSERT_EQ(bytes, 4U * (1 + 5));
  EXPECT_THROW(rows.unpack(packed.data(), bytes - 4, values.data()), Error);
  EXPECT_THROW(rows.unpack(packed.data(), bytes + 4, values.data()), Error);
  packed[4] = std::byte{10};  // the number of a row
  EXPECT_THROW(rows.unpack(packed.data(), bytes, values.data()), Error);
}

}  // namespace
}  // namespace lockstep
