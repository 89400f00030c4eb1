// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/npy_store.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "core/error.h"
#include "core/range.h"
#include "data/readers/record_store.h"
#include "data/utf8.h"

namespace lockstep {

namespace {

/// The checksum of what is unpacked is checked at its end.
void check_end(ByteSource& source, const NpyHeader& header) {
  char extra = 0;
  const std::int64_t end = header.data_offset + header.rows() * header.row_bytes();
  if (!source.has_random_access() && source.read_some(end, &extra, 1) != 0)
    throw Error(ErrorKind::data,
                fmt::format("continues after the {} rows that its header announces", header.rows()),
                source.where(), "The file may be damaged, or is of another format.");
}

/// Where each value of a row, in the order of the file, is in C order: the first axis of the row is the
/// fastest in the file, and the slowest in C.
std::vector<std::int64_t> places_in_row(const NpyHeader& header) {
  const std::span<const std::int64_t> extents = std::span(header.extents).subspan(1);
  std::vector<std::int64_t> places(static_cast<std::size_t>(header.values_per_row()));
  std::vector<std::int64_t> index(extents.size(), 0);
  for (std::int64_t& place : places) {
    for (std::size_t axis = 0; axis < extents.size(); ++axis) place = place * extents[axis] + index[axis];
    for (std::size_t axis = 0; axis < extents.size() && ++index[axis] == extents[axis]; ++axis)
      index[axis] = 0;
  }
  return places;
}

/// Rows of an array in Fortran order: each value of a row stands in a run of those of all rows.
void read_fortran_rows(ByteSource& source, const NpyHeader& header, std::int64_t row, std::int64_t count,
                       char* to) {
  const std::vector<std::int64_t> places = places_in_row(header);
  const auto width = static_cast<std::size_t>(header.value_bytes);
  std::vector<char> run(static_cast<std::size_t>(count) * width);
  for (std::size_t value = 0; value < places.size(); ++value) {
    const std::int64_t begin = static_cast<std::int64_t>(value) * header.rows() + row;
    source.read(header.data_offset + begin * header.value_bytes, run.data(), run.size());
    const char* from = run.data();
    char* out = to + places[value] * header.value_bytes;
    for (std::int64_t i = 0; i < count; ++i, from += width, out += header.row_bytes())
      std::memcpy(out, from, width);
  }
}

/// Throws Error(data) if a number without a sign is beyond int64.
void check_signed(const std::int64_t* values, std::int64_t count,
                  FunctionRef<std::string(std::int64_t)> where) {
  const auto* const found = std::find_if(values, values + count, [](std::int64_t v) { return v < 0; });
  if (found == values + count) return;
  throw Error(ErrorKind::data,
              fmt::format("{} does not fit into 63 bits", static_cast<std::uint64_t>(*found)),
              where(found - values), "Save such large numbers as float64: array.astype('f8').");
}

/// A text as NumPy stores it, filled up with zeros: bytes, which must be UTF-8, or characters of four bytes.
void set_text(std::string& text, std::string_view value, const NpyHeader& header) {
  text.clear();
  if (header.values == NpyHeader::Values::bytes) {
    text = value.substr(0, value.find_last_not_of('\0') + 1);
    if (first_invalid_utf8(text) != std::string_view::npos)
      throw Error(ErrorKind::data, "the label is no text in UTF-8", {},
                  "Save texts: numpy.save(file, numpy.char.decode(array, 'latin-1')).");
    return;
  }
  std::vector<std::uint32_t> characters(value.size() / sizeof(std::uint32_t));
  if (characters.empty()) return;
  std::memcpy(characters.data(), value.data(), value.size());
  to_native(characters.data(), std::ssize(characters), sizeof(std::uint32_t), header.type.big_endian);
  while (!characters.empty() && characters.back() == 0) characters.pop_back();
  for (const std::uint32_t character : characters) {
    constexpr std::uint32_t kLast = 0x10FFFF, kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;
    if (character > kLast || (character >= kFirstSurrogate && character <= kLastSurrogate))
      throw Error(ErrorKind::data, "the label is no text of Unicode", {}, "The file may be damaged.");
    append_utf8(text, character);
  }
}

}  // namespace

void NpyArrays::add(std::shared_ptr<ByteSource> source, const NpyHeader& header, const RowRange& rows) {
  if (rows.first == rows.last) return;
  auto unpacked =
      header.fortran_order && !source->has_random_access() ? std::make_shared<Unpacked>() : nullptr;
  if (unpacked) check_memory(source->where(), header.rows(), static_cast<double>(header.row_bytes()));
  parts_.push_back({std::move(source), header, rows, std::move(unpacked)});
  first_row_.push_back(total_rows_);
  total_rows_ += rows.last - rows.first;
}

bool NpyArrays::has_random_access() const {
  return std::ranges::all_of(parts_, [](const Part& part) { return part.source->has_random_access(); });
}

std::int64_t NpyArrays::rows_per_chunk() const {
  constexpr std::int64_t kRunBytes = 4096;
  std::int64_t most = 1;
  for (const Part& part : parts_)
    if (part.header.fortran_order && !part.unpacked)
      most = std::max(most, std::min(kRunBytes / part.header.value_bytes, part.header.rows()));
  return most;
}

std::size_t NpyArrays::part_of(std::int64_t row) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(first_row_, row) - first_row_.begin()) - 1;
}

std::string NpyArrays::where(const Part& part, std::int64_t row) {
  return fmt::format("{}, record {}", part.source->where(), row);
}

std::string NpyArrays::where(std::int64_t row) const {
  const std::size_t part = part_of(row);
  return where(parts_[part], parts_[part].rows.first + row - first_row_[part]);
}

void NpyArrays::for_each_part(std::int64_t first, std::int64_t count,
                              FunctionRef<void(const Part&, std::int64_t, std::int64_t)> use) const {
  for (std::size_t index = part_of(first); count > 0; ++index) {
    const Part& part = parts_[index];
    const std::int64_t row = part.rows.first + first - first_row_[index];
    const std::int64_t here = std::min(count, part.rows.last - row);
    use(part, row, here);
    first += here;
    count -= here;
  }
}

/// The values as the file has them, in C order.
void NpyArrays::read_bytes(const Part& part, std::int64_t row, std::int64_t count, char* to) {
  ByteSource& source = *part.source;
  const NpyHeader& header = part.header;
  Unpacked* const unpacked = part.unpacked.get();
  const std::int64_t begin = header.data_offset + row * header.row_bytes();
  const auto bytes = static_cast<std::size_t>(count * header.row_bytes());
  if (unpacked) {
    std::call_once(unpacked->once, [&] {
      unpacked->bytes.resize(static_cast<std::size_t>(header.rows() * header.row_bytes()));
      read_fortran_rows(source, header, 0, header.rows(), unpacked->bytes.data());
      check_end(source, header);
    });
    std::memcpy(to, unpacked->bytes.data() + row * header.row_bytes(), bytes);
    return;
  }
  if (header.fortran_order) return read_fortran_rows(source, header, row, count, to);
  read_records(
      source, begin, to, bytes, count,
      [&, width = header.row_bytes()](std::int64_t i) {
        return Range{begin + i * width, begin + (i + 1) * width};
      },
      [&](std::int64_t i) { return where(part, row + i); });
  if (row + count == header.rows()) check_end(source, header);
}

void NpyArrays::read(std::int64_t first, std::int64_t count, void* to) const {
  char* out = static_cast<char*>(to);
  for_each_part(first, count, [&](const Part& part, std::int64_t row, std::int64_t here) {
    const NpyHeader& header = part.header;
    const std::int64_t values = here * header.values_per_row();
    if (header.values == NpyHeader::Values::uint32) {
      std::vector<std::uint32_t> narrow(static_cast<std::size_t>(values));
      read_bytes(part, row, here, reinterpret_cast<char*>(narrow.data()));
      to_native(narrow.data(), values, sizeof(std::uint32_t), header.type.big_endian);
      std::ranges::copy(narrow, reinterpret_cast<std::int64_t*>(out));
    } else {
      read_bytes(part, row, here, out);
      to_native(out, values, header.type);
      if (header.values == NpyHeader::Values::uint64)
        check_signed(reinterpret_cast<const std::int64_t*>(out), values,
                     [&](std::int64_t i) { return where(part, row + i / header.values_per_row()); });
    }
    out += values * static_cast<std::int64_t>(size_in_bytes(header.type.type));
  });
}

void NpyArrays::read_texts(std::int64_t first, std::int64_t count,
                           FunctionRef<void(std::int64_t, std::string_view)> use) const {
  std::int64_t done = 0;
  std::vector<char> bytes;
  std::string text;
  for_each_part(first, count, [&](const Part& part, std::int64_t row, std::int64_t here) {
    const auto width = static_cast<std::size_t>(part.header.value_bytes);
    bytes.resize(static_cast<std::size_t>(here) * width);
    read_bytes(part, row, here, bytes.data());
    for (std::int64_t i = 0; i < here; ++i, ++done) {
      const std::string_view value(bytes.data() + static_cast<std::size_t>(i) * width, width);
      try {
        set_text(text, value, part.header);
        use(done, text);
      } catch (const Error& error) {
        if (!error.where().empty()) throw;
        throw Error(error.kind(), error.what_happened(), where(part, row + i), error.advice());
      }
    }
  });
}

NpyStore::NpyStore(NpyArrays features, DType feature_dtype, std::int64_t values_per_sample,
                   std::int64_t channels, std::optional<NpyArrays> labels, DType label_dtype,
                   std::int64_t label_columns, std::optional<TextClasses> classes)
    : features_(std::move(features)),
      feature_dtype_(feature_dtype),
      values_per_sample_(values_per_sample),
      channels_(channels),
      labels_(std::move(labels)),
      label_dtype_(label_dtype),
      label_columns_(label_columns),
      classes_(std::move(classes)) {}

bool NpyStore::has_random_access() const {
  return features_.has_random_access() && (!labels_ || labels_->has_random_access());
}

void NpyStore::read(std::int64_t first, std::int64_t count, const SampleRoom& to) {
  if (channels_ == 0) {
    features_.read(first, count, to.features);
  } else {
    const std::size_t value_bytes = size_in_bytes(feature_dtype_);
    std::vector<char> scratch(static_cast<std::size_t>(count * values_per_sample_) * value_bytes);
    features_.read(first, count, scratch.data());
    channels_to_last(value_bytes, scratch.data(), to.features, count, channels_,
                     values_per_sample_ / channels_);
  }
  if (!labels_) return;
  if (classes_)
    return labels_->read_texts(first, count, [&](std::int64_t i, std::string_view text) {
      to.label_indices[i] = classes_->index_of(text);
    });
  std::vector<char> scratch(static_cast<std::size_t>(count * label_columns_) * size_in_bytes(label_dtype_));
  labels_->read(first, count, scratch.data());
  convert_labels(scratch.data(), label_dtype_, count * label_columns_, to,
                 [&](std::int64_t i) { return labels_->where(first + i / label_columns_); });
}

}  // namespace lockstep
