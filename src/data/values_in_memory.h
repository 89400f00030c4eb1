// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The values of a whole set in one piece of memory, features first, then labels: that of this process, or one
// that processes share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/opened_samples.h"

namespace lockstep {

/// The bytes of that memory.
std::int64_t bytes_in_memory(const StoredForm& form);
/// Where the values are in it.
SampleRoom places_in(const StoredForm& form, void* memory);

/// What distinguishes samples that may not share it: the form, and a digest of the values that are in memory,
/// or of the first sample. Throws what the store throws.
std::string shared_form(const OpenedSamples& samples);

/// Writes part `part` of `parts` of the values to the memory. Throws what the store throws.
void fill_memory(const OpenedSamples& samples, void* memory, int part, int parts, int threads);

/// All parts are written: from now on the values are those in the memory, which lives as long as `owner`.
void take_memory(OpenedSamples& samples, void* memory, std::shared_ptr<const void> owner);

/// Reads all values into memory of this process. Throws Error(data), and what the store throws.
void load_values(OpenedSamples& samples, int threads);

}  // namespace lockstep
