// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to io: CRC-32C (Castagnoli; RFC 3720, appendix B.4), and the masked form in TFRecord files. A CRC
// of data that contain CRCs would be weak, so the format rotates and shifts it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

std::uint32_t crc32c(const void* data, std::size_t bytes);
/// crc32c() on processors without an instruction for it.
std::uint32_t crc32c_by_table(const void* data, std::size_t bytes);

/// ((c >> 15) | (c << 17)) + 0xA282EAD8 for c = crc32c(data).
std::uint32_t masked_crc32c(const void* data, std::size_t bytes);

}  // namespace lockstep
