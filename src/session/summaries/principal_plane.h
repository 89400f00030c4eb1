// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows of a table (words of an embedding) in the plane of their first two principal components, and that
// plane as a picture. Host memory; the bits depend on the table alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "io/png_file.h"

namespace lockstep {

struct PrincipalPlane {
  std::vector<double> x, y;         ///< by row, around 0
  double x_share = 0, y_share = 0;  ///< of the variance of all columns
};

/// `values`: row-major, of `columns` columns. A component's sign is that of its largest element. Empty if
/// there are fewer than two columns or rows, or values that are not finite.
PrincipalPlane principal_plane(std::span<const float> values, std::int64_t columns);

/// A dot for each row, dark blue for the first and light for the last one: vocabularies begin with frequent
/// words.
Picture picture_of(const PrincipalPlane& plane);

}  // namespace lockstep
