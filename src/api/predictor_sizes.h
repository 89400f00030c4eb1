// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How many samples a Predictor computes together. A product of oneDNN is made for a number of rows, and may
// add in another order for another number: then a sample alone would have other bits than in `lockstep
// predict`, which computes a microshard at a time. So the number of samples of a microshard comes first, and
// others are used where they are seen to give the same bits on this processor. Where no smaller one does,
// fewer samples are completed with zeros.
//
// With AVX2 the order may also depend on the place of a row among the others (seen: 8 rows, the last two).
// There a sample has the bits of its place in the call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

struct StoredModel;

/// The sizes of passes, ascending. `most`: the largest one, if it has the bits; 0: as the net's memory
/// suggests. Takes a moment: it computes some samples with each of them. Throws Error(usage) if `most` is
/// below 0.
std::vector<std::int64_t> prediction_sizes(const StoredModel& stored, std::int64_t most);

/// The size of the next pass of `left` > 0 samples: the largest that they fill, else the smallest one.
std::int64_t pass_size(std::span<const std::int64_t> sizes, std::int64_t left);

}  // namespace lockstep
