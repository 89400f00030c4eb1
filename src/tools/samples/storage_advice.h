// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What looks wrong about how and where a set is stored: chunks, compression, the file system. For `lockstep
// data`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/function_ref.h"
#include "data/stored_chunks.h"

namespace lockstep {

/// `streamed`: the set is read while it is used, so chunks are unpacked in every epoch. `per_second`: samples
/// that one thread makes ready from memory, with the transforms.
std::vector<std::string> chunk_advice(const StoredChunks& chunks, bool streamed, double per_second);

/// The type of the file system of a path (statfs(2), f_type); 0: unknown.
std::uint64_t file_system_of(const std::string& path);

/// Advice on the files of a set. `type_of`: file_system_of(), or a test's.
std::vector<std::string> file_system_advice(std::span<const std::string> files,
                                            FunctionRef<std::uint64_t(const std::string& path)> type_of);

}  // namespace lockstep
