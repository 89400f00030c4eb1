// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Checked arithmetic of sizes: numbers of elements and bytes that come from a configuration or from data.
// A product that does not fit is no value, never a wrapped one.
//
// Limits: a Shape has at most kMaxExtentProduct elements, so that num_elements() and the bytes of a number
// type fit into 64 bits. A variable, and an output of a layer for one microshard, has at most kMaxElements:
// Graph checks it and names the layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/function_ref.h"

namespace lockstep {

/// 2^59: 4 bytes for each fit into 64 bits. Data sets on disk have shapes, too.
inline constexpr std::int64_t kMaxExtentProduct = std::int64_t{1} << 59;
/// 2^40: 4 TiB in float32, more than the memory of a node.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

/// The product of factors that are not negative; nothing if it exceeds `limit`.
std::optional<std::int64_t> product_up_to(std::int64_t limit, std::span<const std::int64_t> factors);
std::optional<std::int64_t> product_up_to(std::int64_t limit, std::initializer_list<std::int64_t> factors);
/// The rounded product, for messages.
double product_in_double(std::span<const std::int64_t> factors);
/// "24 bytes", "3.1 MB", "17.6 TB".
std::string size_text(double bytes);

/// Calls `body`, which allocates memory for `what` ("layer conv1", "the 3 slots of the optimizer"). If there
/// is not enough, the error names it: Error(device), "no memory for WHAT: ...", with the position `where`.
void allocate_for(std::string_view what, FunctionRef<void()> body, std::string_view where = {});

/// Calls `body`, which reads files into memory that no batch could make smaller. If there is not enough, the
/// error is Error(data) with the file or files of `where`.
void read_into_memory(FunctionRef<std::string()> where, FunctionRef<void()> body);

}  // namespace lockstep
