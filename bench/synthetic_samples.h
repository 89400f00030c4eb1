// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples in memory for a net of the benchmarks: numbers and labels that repeat, of its shapes.
#pragma once

#include <cstdint>

#include "data/reader_dataset.h"
#include "nets.h"

namespace lockstep {

ReaderDataset synthetic_samples(const BenchNet& net, std::int64_t samples);

}  // namespace lockstep
