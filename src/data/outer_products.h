// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums of outer products x x^T in double: symmetric matrices, of which the upper triangle is kept.
//
// Rows are kept in groups of four; a group begins at the panel of eight columns that has its diagonal. Sizes
// are padded to whole panels with zeros.
#pragma once

#include <cstdint>

namespace lockstep {

/// Numbers of a matrix of `size` rows.
std::int64_t packed_count(std::int64_t size);
/// Element (row, column), row <= column.
std::int64_t packed_place(std::int64_t row, std::int64_t column, std::int64_t size);

/// packed += the sum of x x^T over `count` vectors x of `size` values, one after the other. Each element is
/// summed in the order of the vectors: the bits depend neither on threads nor on how vectors are divided
/// among calls.
void add_outer_products(const double* vectors, std::int64_t count, std::int64_t size, double* packed,
                        int threads);

}  // namespace lockstep
