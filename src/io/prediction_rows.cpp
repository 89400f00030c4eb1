// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/prediction_rows.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <numeric>

#include "io/fault_points.h"
#include "io/file_descriptor.h"

namespace lockstep {

// The datasets are little-endian.
static_assert(std::endian::native == std::endian::little);

PredictionRowWriter::PredictionRowWriter(int descriptor, std::string path, std::vector<PredictedHead> heads,
                                         std::vector<std::uint64_t> offsets,
                                         std::function<std::int64_t(std::int64_t)> number)
    : descriptor_(descriptor),
      path_(std::move(path)),
      heads_(std::move(heads)),
      offsets_(std::move(offsets)),
      number_(std::move(number)) {}

void PredictionRowWriter::write(std::int64_t first, std::int64_t n, std::span<const PredictedRows> rows) {
  if (n == 0) return;
  auto offset = offsets_.begin();
  numbers_.resize(static_cast<std::size_t>(n));
  std::iota(numbers_.begin(), numbers_.end(), first);
  if (number_)
    for (std::int64_t& number : numbers_) number = number_(number);
  put(*offset++, sizeof(std::int64_t), first, n, numbers_.data());
  for (std::size_t h = 0; h < heads_.size(); ++h) {
    const PredictedHead& head = heads_[h];
    put(*offset++, static_cast<std::size_t>(head.values()) * sizeof(float), first, n, rows[h].outputs.data());
    if (head.has_spread)
      put(*offset++, static_cast<std::size_t>(head.values()) * sizeof(float), first, n,
          rows[h].spread.data());
    if (head.has_classes) {
      classes_.clear();
      const auto width = static_cast<std::size_t>(head.classes());
      const auto values = static_cast<std::size_t>(n * head.values());
      for (std::size_t at = 0; at < values; at += width)
        classes_.push_back(static_cast<std::int32_t>(largest_class(rows[h].outputs.subspan(at, width))));
      put(*offset++, static_cast<std::size_t>(head.positions()) * sizeof(std::int32_t), first, n,
          classes_.data());
    }
    if (head.labels == 0) continue;
    const void* const labels = head.labels_are_indices
                                   ? static_cast<const void*>(rows[h].label_indices.data())
                                   : rows[h].label_values.data();
    put(*offset++, static_cast<std::size_t>(head.labels) * 4, first, n, labels);
  }
}

void PredictionRowWriter::put(std::uint64_t offset, std::size_t row_bytes, std::int64_t first, std::int64_t n,
                              const void* rows) const {
  const auto* from = static_cast<const char*>(rows);
  std::uint64_t at = offset + static_cast<std::uint64_t>(first) * row_bytes;
  for (std::size_t left = static_cast<std::size_t>(n) * row_bytes; left > 0;) {
    const ssize_t written = faulty_pwrite(descriptor_, from, left, static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw file_error(ErrorKind::output, "write", path_, written < 0 ? errno : EIO);
    from += written;
    at += static_cast<std::uint64_t>(written);
    left -= static_cast<std::size_t>(written);
  }
}

struct PredictionPart::Impl {
  FileDescriptor file;
  std::string path;
  PredictionRowWriter writer;
};

PredictionPart::PredictionPart(const std::string& path, std::vector<PredictedHead> heads,
                               std::vector<std::uint64_t> offsets,
                               std::function<std::int64_t(std::int64_t)> number) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.is_open()) throw file_error(ErrorKind::output, "open for writing", path, errno);
  const int descriptor = file.get();
  impl_ = std::make_unique<Impl>(
      Impl{std::move(file), path,
           PredictionRowWriter(descriptor, path, std::move(heads), std::move(offsets), std::move(number))});
}

PredictionPart::~PredictionPart() = default;

void PredictionPart::add(std::int64_t first, std::int64_t n, std::span<const PredictedRows> heads) {
  impl_->writer.write(first, n, heads);
}

void PredictionPart::finish() {
  if (faulty_fsync(impl_->file.get()) != 0 || impl_->file.close() != 0)
    throw file_error(ErrorKind::output, "write", impl_->path, errno);
}

}  // namespace lockstep
