// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The members of a tar archive: POSIX ustar, with pax headers (path, size) and GNU's long names and large
// sizes. Reads headers alone, and is strict: every header has a checksum, and an archive that does not end
// with two blocks of zeros is truncated.
//
// Compressed archives are refused: nothing in them has a place. The index of a set takes 20 bytes per sample.
// Readers do not know the run directory, so the reader's option `index` names the file that keeps it.
#pragma once

#include <cstdint>
#include <string>

#include "core/function_ref.h"
#include "io/byte_source.h"

namespace lockstep {

/// A regular file in an archive.
struct TarMember {
  std::string name;
  std::int64_t offset = 0;  ///< of its first byte in the archive
  std::int64_t size = 0;    ///< bytes
};

/// Calls use(member) for each regular file, in their order. Folders are passed over. Throws Error(data) at
/// "<archive>, byte N" for a damaged or truncated archive, for links and devices, and for a compressed one.
void read_tar(ByteSource& archive, FunctionRef<void(const TarMember&)> use);

/// The name in the header before a member's first byte, for messages; empty if there is none. A long one may
/// be cut.
std::string tar_name_before(ByteSource& archive, std::int64_t offset);

}  // namespace lockstep
