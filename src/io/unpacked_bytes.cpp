// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Bytes that zlib unpacks, in order; reading further back begins again at the start.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <vector>

#include "core/error.h"
#include "io/byte_source.h"
#include "io/file_error.h"

namespace lockstep {

namespace {

constexpr std::size_t kPackedBlock = std::size_t{1} << 17;
/// The maximum compression ratio of deflate (zlib.net/zlib_tech.html).
constexpr std::int64_t kMostRatio = 1032;

/// zlib's parameter windowBits, which also says what frame there is.
int window_bits(Packing packing) {
  switch (packing) {
    case Packing::gzip:
      return 15 + 16;
    case Packing::zlib:
      return 15;
    case Packing::deflate:
      break;
  }
  return -15;
}

class UnpackedBytes final : public ByteSource {
 public:
  UnpackedBytes(std::shared_ptr<ByteSource> source, Packing packing, std::int64_t offset,
                std::int64_t packed_bytes, std::string where, std::optional<std::uint32_t> crc32)
      : source_(std::move(source)),
        packing_(packing),
        first_(offset),
        last_(offset + packed_bytes),
        where_(std::move(where)),
        wanted_crc_(crc32),
        packed_(kPackedBlock) {
    if (inflateInit2(&stream_, window_bits(packing)) != Z_OK)
      throw Error(ErrorKind::data, "no memory to unpack it", where_);
    restart();
  }
  ~UnpackedBytes() override { inflateEnd(&stream_); }
  UnpackedBytes(const UnpackedBytes&) = delete;
  UnpackedBytes& operator=(const UnpackedBytes&) = delete;

  std::size_t read_some(std::int64_t offset, void* to, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (offset < done_) restart();
    std::vector<unsigned char> skipped(
        offset > done_ ? static_cast<std::size_t>(std::min<std::int64_t>(offset - done_, 65536)) : 0);
    while (done_ < offset) {
      const auto step = static_cast<std::size_t>(std::min<std::int64_t>(offset - done_, 65536));
      if (unpack(skipped.data(), step) < step) return 0;
    }
    return unpack(static_cast<unsigned char*>(to), bytes);
  }
  std::int64_t max_bytes() const override { return (last_ - first_ + 1) * kMostRatio; }
  bool has_random_access() const override { return false; }
  const std::string& where() const override { return where_; }

 private:
  void restart() {
    inflateReset(&stream_);
    stream_.avail_in = 0;
    at_ = first_;
    done_ = 0;
    crc_ = 0;
    ended_ = false;
  }

  [[noreturn]] void fail(std::string what) const {
    throw FileError(std::move(what), fmt::format("{}, byte {} of the unpacked data", where_, done_),
                    "Copy or make the file again.");
  }

  void fill() {
    const auto wanted = std::min<std::int64_t>(last_ - at_, static_cast<std::int64_t>(packed_.size()));
    const std::size_t got = source_->read_some(at_, packed_.data(), static_cast<std::size_t>(wanted));
    if (got == 0) fail("the compressed data end early: truncated?");
    at_ += static_cast<std::int64_t>(got);
    stream_.next_in = packed_.data();
    stream_.avail_in = static_cast<unsigned>(got);
  }

  /// Another member of a gzip file may follow.
  void end_member() {
    if (stream_.avail_in == 0 && at_ < last_) fill();
    if (stream_.avail_in == 0) {
      ended_ = true;
      if (wanted_crc_ && *wanted_crc_ != crc_) fail("the checksum of the unpacked data is wrong: damaged");
    } else if (packing_ == Packing::gzip) {
      inflateReset(&stream_);
    } else {
      fail("other bytes follow the end of the compressed data: damaged");
    }
  }

  std::size_t unpack(unsigned char* to, std::size_t bytes) {
    std::size_t got = 0;
    while (got < bytes && !ended_) {
      if (stream_.avail_in == 0) fill();
      const auto room =
          static_cast<unsigned>(std::min<std::size_t>(bytes - got, std::numeric_limits<int>::max()));
      stream_.next_out = to + got;
      stream_.avail_out = room;
      const int code = inflate(&stream_, Z_NO_FLUSH);
      const std::size_t unpacked = room - stream_.avail_out;
      if (wanted_crc_) crc_ = static_cast<std::uint32_t>(crc32_z(crc_, to + got, unpacked));
      got += unpacked;
      done_ += static_cast<std::int64_t>(unpacked);
      if (code == Z_STREAM_END)
        end_member();
      else if (code != Z_OK && code != Z_BUF_ERROR)
        fail(fmt::format("the compressed data are damaged: {}", stream_.msg == nullptr ? "" : stream_.msg));
    }
    return got;
  }

  const std::shared_ptr<ByteSource> source_;
  const Packing packing_;
  const std::int64_t first_, last_;  ///< of the packed bytes in the source
  const std::string where_;
  const std::optional<std::uint32_t> wanted_crc_;

  std::mutex mutex_;
  z_stream stream_{};
  std::vector<unsigned char> packed_;
  std::int64_t at_ = 0;    ///< of the next packed byte to read
  std::int64_t done_ = 0;  ///< unpacked bytes
  std::uint32_t crc_ = 0;  ///< of them
  bool ended_ = false;
};

}  // namespace

std::shared_ptr<ByteSource> unpacked_bytes(std::shared_ptr<ByteSource> source, Packing packing,
                                           std::int64_t offset, std::int64_t packed_bytes, std::string where,
                                           std::optional<std::uint32_t> crc32) {
  return std::make_shared<UnpackedBytes>(std::move(source), packing, offset, packed_bytes, std::move(where),
                                         crc32);
}

}  // namespace lockstep
