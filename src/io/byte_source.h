// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal: bytes that are read at any place: those of a file, of a part of one, or unpacked ones. Threads
// read concurrently. Files are read by pread(2): one that shrinks while it is read is an Error, where a
// mapping would end the process.
//
// Records are found once, and read where they lie: a header says where the rows of an array are, and the
// lengths of TFRecord frames are followed without the data between them. The usual libraries read a whole
// file from front to back into objects. So the small parsers (npy_format.h, example.h, tfrecord_file.h,
// data/readers/zip_directory.h) are own ones: they return views of bytes, check each length against what is
// there, and name the byte; each has a fuzz target. A file that is compressed as a whole has no places, and
// is unpacked into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace lockstep {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Reads up to `bytes` from `offset` on; returns fewer only at the end. Throws Error(data).
  virtual std::size_t read_some(std::int64_t offset, void* to, std::size_t bytes) = 0;
  /// Throws Error(data) that names the byte where the source ends if fewer are left.
  void read(std::int64_t offset, void* to, std::size_t bytes);
  /// The number of bytes; of packed ones an upper bound.
  virtual std::int64_t max_bytes() const = 0;
  /// False: bytes are unpacked in order, and going back begins again at the start.
  virtual bool has_random_access() const { return true; }
  /// The path of the file, for messages.
  virtual const std::string& where() const = 0;
};

/// The number of bytes; packed ones are unpacked to count them.
std::int64_t exact_bytes(ByteSource& source);

/// A regular file. At most 64 files are kept open at a time in this process; the others are opened again when
/// they are needed. Throws Error(data).
std::shared_ptr<ByteSource> file_bytes(const std::string& path);

enum class Packing {
  gzip,    ///< RFC 1952, also several members one after the other
  zlib,    ///< RFC 1950
  deflate  ///< RFC 1951: without a frame
};

/// The bytes that [offset, offset + packed_bytes) of `source` unpack to. `where` is for messages. Damage is
/// an Error(data). `crc32`: of all unpacked bytes, checked at their end.
std::shared_ptr<ByteSource> unpacked_bytes(std::shared_ptr<ByteSource> source, Packing packing,
                                           std::int64_t offset, std::int64_t packed_bytes, std::string where,
                                           std::optional<std::uint32_t> crc32 = std::nullopt);

/// Bytes [offset, offset + bytes) of `source`.
std::shared_ptr<ByteSource> part_of_bytes(std::shared_ptr<ByteSource> source, std::int64_t offset,
                                          std::int64_t bytes, std::string where);

/// The file's bytes, unpacked if the file begins as gzip does.
std::shared_ptr<ByteSource> plain_or_gzip_bytes(const std::string& path);

}  // namespace lockstep
