// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Division of a set by keys of its samples: a hash of the key is a number from 0 to 1, and a part of the set
// is a range of these numbers. So the part of a sample depends on its key only, and stays when samples are
// added, removed or moved. Parts have about their shares, not exactly.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep {

class Dataset;
struct ChoiceOptions;

/// What the key of a sample is. record: name of the file, without folders, and number or name of the record.
/// file: name of the file alone, so samples of a file stay together. column: a text of the table.
enum class SplitKey { none, record, file, column };

/// "photos/a/x.tar, member 7.jpg" -> "x.tar, member 7.jpg", or "x.tar".
std::string_view split_key_of(std::string_view where, SplitKey key);

/// Where a key lies from 0 to below 1. Hashes determine which samples are in a part: do not change it.
double split_place(std::uint64_t hash_of_key, std::uint64_t seed);

/// The place of each sample. Throws Error(data) if there is no such column.
std::vector<double> split_places(const Dataset& data, SplitKey key, std::uint64_t seed);

/// The samples of the part that the options name, ascending.
std::vector<std::uint32_t> list_by_key(const ChoiceOptions& options, bool evaluation,
                                       std::span<const double> places);

}  // namespace lockstep
