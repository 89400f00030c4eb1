// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to io: CRC-32C (Castagnoli; RFC 3720, appendix B.4), and the masked form that TFRecord files hold:
// a CRC of data that contain CRCs would be weak, so it is rotated and shifted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep {

std::uint32_t crc32c(const void* data, std::size_t bytes);

/// ((c >> 15) | (c << 17)) + 0xA282EAD8 for c = crc32c(data).
std::uint32_t masked_crc32c(const void* data, std::size_t bytes);

}  // namespace lockstep
