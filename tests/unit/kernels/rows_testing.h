// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables with sparse gradients, and their expected sums from plain loops, for the tests of the CPU's and a
// GPU's kernels.
#pragma once

#include <string>
#include <vector>

#include "unit/kernels/kernel_testing.h"

namespace lockstep {

/// Widths that are and are not multiples of four; touched rows: none, one, the first and last, all.
struct RowCase {
  std::int64_t rows, width;
  std::vector<std::int32_t> touched;
  std::string text() const {
    return std::to_string(touched.size()) + " of " + std::to_string(rows) + " rows of " +
           std::to_string(width);
  }
};
/// `all` false: few and small ones.
inline std::vector<RowCase> row_cases(bool all = true) {
  std::vector<RowCase> cases;
  for (const std::int64_t width :
       all ? std::vector<std::int64_t>{1, 3, 4, 36, 130} : std::vector<std::int64_t>{3, 36})
    for (const std::int64_t rows :
         all ? std::vector<std::int64_t>{1, 23, 300} : std::vector<std::int64_t>{23}) {
      std::vector<std::int32_t> every, some;
      for (std::int32_t row = 0; row < rows; ++row) {
        every.push_back(row);
        if (row % 7 == 2 || row % 11 == 3) some.push_back(row);
      }
      const auto last = static_cast<std::int32_t>(rows - 1);
      cases.push_back({rows, width, {}});
      cases.push_back({rows, width, {last}});
      cases.push_back({rows, width, every});
      if (rows > 1) cases.push_back({rows, width, {0, last}});
      if (rows > 1) cases.push_back({rows, width, some});
    }
  return cases;
}

/// The gradient of the whole table, with zeros in rows without a gradient.
inline Values dense_gradient(const RowCase& test, const Values& values) {
  Values dense(static_cast<std::size_t>(test.rows * test.width), 0.0);
  for (std::size_t k = 0; k < test.touched.size(); ++k)
    for (std::int64_t c = 0; c < test.width; ++c)
      dense[static_cast<std::size_t>(test.touched[k] * test.width + c)] =
          values[k * static_cast<std::size_t>(test.width) + static_cast<std::size_t>(c)];
  return dense;
}

/// Rows of several microshards: places [leaves][leaf_rows]. Unused places hold a row that would cause errors.
struct LeafCase {
  std::int64_t leaves, leaf_rows, rows, width;
  std::vector<std::int32_t> counts, row_of_place;
  Values values;  ///< of all places
  std::string text() const {
    return std::to_string(leaves) + " leaves of " + std::to_string(leaf_rows) + " of " +
           std::to_string(rows) + " rows of " + std::to_string(width);
  }
  /// The place of a row in a leaf, or -1.
  std::int64_t place(std::int64_t leaf, std::int32_t row) const {
    for (std::int64_t k = 0; k < counts[static_cast<std::size_t>(leaf)]; ++k)
      if (row_of_place[static_cast<std::size_t>(leaf * leaf_rows + k)] == row) return leaf * leaf_rows + k;
    return -1;
  }
  /// Element `c` of a row, summed over the leaves [first, last) in tree order. `found`: a leaf has the row.
  float sum(std::int64_t first, std::int64_t last, std::int32_t row, std::int64_t c, bool& found) const {
    if (last - first == 1) {
      const std::int64_t at = place(first, row);
      found = at >= 0;
      return found ? static_cast<float>(values[static_cast<std::size_t>(at * width + c)]) : 0.0F;
    }
    std::int64_t left = 1;
    while (2 * left < last - first) left *= 2;
    bool in_left = false, in_right = false;
    const float a = sum(first, first + left, row, c, in_left), b = sum(first + left, last, row, c, in_right);
    found = in_left || in_right;
    return in_left && in_right ? a + b : in_left ? a : b;
  }
};

inline LeafCase leaf_case(std::int64_t leaves, std::int64_t leaf_rows, std::int64_t rows,
                          std::int64_t width) {
  LeafCase test{leaves, leaf_rows, rows, width, {}, {}, random_values(leaves * leaf_rows * width, 7)};
  const Values chance = random_values(leaves * rows, 8, 0.0, 1.0);
  for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
    // Some leaves use all places, some none; most leaves have the first rows.
    const double share = leaf % 5 == 1 ? 1.1 : leaf % 5 == 3 ? -1.0 : 0.4;
    std::int32_t count = 0;
    for (std::int64_t row = 0; row < rows && count < leaf_rows; ++row) {
      if (chance[static_cast<std::size_t>(leaf * rows + row)] - (row < 2 && share > 0 ? 0.5 : 0.0) > share)
        continue;
      test.row_of_place.push_back(static_cast<std::int32_t>(row));
      ++count;
    }
    test.counts.push_back(count);
    while (count++ < leaf_rows) test.row_of_place.push_back(0);
  }
  return test;
}

inline std::vector<LeafCase> leaf_cases() {
  return {leaf_case(1, 4, 9, 3),   leaf_case(2, 1, 1, 1),    leaf_case(3, 5, 40, 4),
          leaf_case(4, 40, 40, 5), leaf_case(5, 12, 30, 8),  leaf_case(7, 3, 20, 130),
          leaf_case(8, 9, 12, 36), leaf_case(13, 60, 90, 2), leaf_case(33, 17, 50, 1)};
}

}  // namespace lockstep
