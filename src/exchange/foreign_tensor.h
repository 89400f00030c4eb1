// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A tensor of a file of another program: a name, a type, extents and its own memory, row-major. One process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/dtype.h"

namespace lockstep {

struct ForeignTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> extents;  ///< empty: a scalar
  std::vector<std::byte> bytes;

  std::int64_t num_elements() const;
};

/// A tensor with the name of a variable, and the name that it has in the file.
struct ImportedTensor {
  std::string from;
  ForeignTensor tensor;
};

/// Tensors with texts about them, as a file holds both.
struct ForeignFile {
  std::vector<ForeignTensor> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Throws Error(data) for extents that no tensor of Lockstep can have; `path` is that of the file.
void check_extents(const ForeignTensor& tensor, const std::string& path);

/// "[3, 3, 16]".
std::string extents_text(std::span<const std::int64_t> extents);

/// The tensor with its axes in another order: axis i of the result is axis order[i] of `from`.
ForeignTensor with_axes(const ForeignTensor& from, std::span<const int> order);

}  // namespace lockstep
