// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

/// Removes the records of training of `step` that have the number `name` from a metrics.jsonl, atomically. A
/// file that does not exist, or cannot be read, stays as it is. One process, which has no MetricsLog of it.
void drop_train_record(const std::string& path, std::int64_t step, std::string_view name);

}  // namespace lockstep
