// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/tfrecord_writer.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "core/error.h"
#include "io/crc32c.h"
#include "io/output_file.h"

namespace lockstep {

namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 18;
static_assert(std::endian::native == std::endian::little, "lengths and checksums are stored in this order");

}  // namespace

struct TfrecordWriter::State {
  State(const std::string& path, TfrecordCompression compression, int level) : file(path, {}) {
    using enum TfrecordCompression;
    if (compression == automatic) compression = path.ends_with(".gz") ? gzip : none;
    packs = compression != none;
    LOCKSTEP_REQUIRE(level >= 1 && level <= 9, ErrorKind::config, "zlib has the levels 1 to 9, not {}",
                     level);
    if (!packs) return;
    // zlib's windowBits also says which frame is written.
    LOCKSTEP_REQUIRE(deflateInit2(&stream, level, Z_DEFLATED, compression == gzip ? 15 + 16 : 15, 8,
                                  Z_DEFAULT_STRATEGY) == Z_OK,
                     ErrorKind::output, "{}: no memory to compress it", path);
    packed.resize(kBlockBytes);
  }
  ~State() {
    if (packs) deflateEnd(&stream);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Packs what was collected, and writes it.
  void flush(bool at_end) {
    if (!packs) {
      file.append(collected);
    } else {
      stream.next_in = reinterpret_cast<unsigned char*>(collected.data());
      stream.avail_in = static_cast<unsigned>(collected.size());
      do {
        stream.next_out = packed.data();
        stream.avail_out = static_cast<unsigned>(packed.size());
        deflate(&stream, at_end ? Z_FINISH : Z_NO_FLUSH);
        file.append(packed.data(), packed.size() - stream.avail_out);
      } while (stream.avail_out == 0);
    }
    collected.clear();
  }

  void add(const void* data, std::size_t bytes) {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
      const std::size_t step = std::min(bytes, kBlockBytes);
      collected.append(at, step);
      at += step;
      bytes -= step;
      if (collected.size() >= kBlockBytes) flush(false);
    }
  }

  OutputFile file;
  bool packs = false, closed = false;
  z_stream stream{};
  std::vector<unsigned char> packed;
  std::string collected;
  std::int64_t num_records = 0;
};

TfrecordWriter::TfrecordWriter(const std::string& path, TfrecordCompression compression, int level)
    : state_(std::make_unique<State>(path, compression, level)) {}
TfrecordWriter::~TfrecordWriter() = default;

void TfrecordWriter::write(std::string_view record) {
  LOCKSTEP_CHECK(!state_->closed);
  const std::uint64_t length = record.size();
  const std::uint32_t of_length = masked_crc32c(&length, sizeof length),
                      of_data = masked_crc32c(record.data(), record.size());
  state_->add(&length, sizeof length);
  state_->add(&of_length, sizeof of_length);
  state_->add(record.data(), record.size());
  state_->add(&of_data, sizeof of_data);
  ++state_->num_records;
}

std::int64_t TfrecordWriter::num_records() const { return state_->num_records; }

void TfrecordWriter::close() {
  LOCKSTEP_CHECK(!state_->closed);
  state_->flush(true);
  state_->file.publish();
  state_->closed = true;
}

}  // namespace lockstep
