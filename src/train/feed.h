// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace lockstep {

struct Labels;
struct Microshard;

/// Changes a microshard's samples before the forward pass: features (n samples) and labels. Workers call it
/// concurrently. Its result may depend on step and sample alone, never on rank or thread.
using Feed = std::function<void(std::int64_t step, const Microshard&, float* features, Labels& labels)>;

}  // namespace lockstep
