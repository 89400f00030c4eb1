// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What tells samples from others, for comparisons between ranks and between jobs.
#pragma once

#include <string>

#include "data/dataset_parts.h"

namespace lockstep {

class Digest;
class OpenedSamples;

/// Types, shapes and sizes.
Digest& add_form(Digest& digest, const StoredForm& form);

/// 16 hexadecimal digits over values, types, shapes, transform, vocabulary and class names, but not file
/// names. Of samples with a store of more than 64 MiB, or more than 4096 decoded ones, over some blocks of
/// the values, evenly spread. Values with a store have the same one in memory and where they are read.
std::string fingerprint_of(const OpenedSamples& samples, int threads);

}  // namespace lockstep
