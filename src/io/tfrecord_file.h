// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal: the frame of a record in TFRecord files (tensorflow.org/tutorials/load_data/tfrecord): length
// (uint64), masked CRC-32C of the length, the data, masked CRC-32C of the data; all little-endian.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/byte_source.h"
#include "io/tfrecord_writer.h"

namespace lockstep {

inline constexpr std::int64_t kTfrecordHeaderBytes = 12, kTfrecordFooterBytes = 4;

/// The frames of a file, unpacked. automatic: the first bytes decide. Throws Error(data).
std::shared_ptr<ByteSource> open_tfrecord_file(const std::string& path, TfrecordCompression compression);

/// The first byte of each record, and the end of the last one. Checks lengths and their checksums; leaves out
/// the data where it can. Throws Error(data) that names record and byte of a truncated or damaged frame.
std::vector<std::int64_t> find_tfrecords(ByteSource& source);

/// The length in a frame's first 12 bytes. Throws Error(data) without a place if its checksum is wrong.
std::int64_t tfrecord_length(const char* header);
bool is_tfrecord_header(const char* header);

/// The data of a whole frame. Throws Error(data) without a place if a checksum is wrong.
std::string_view tfrecord_data(std::string_view frame);

}  // namespace lockstep
