// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/hdf5_store.h"

#include <sys/stat.h>

#include <fmt/ranges.h>

#include <algorithm>

#include "data/readers/hdf5_axes.h"
#include "data/readers/hdf5_channels.h"
#include "data/readers/hdf5_sequences.h"
#include "data/readers/hdf5_texts.h"
#include "data/stored_numbers.h"
#include "io/file_error.h"

namespace lockstep {

namespace {

/// Files that are kept open.
constexpr std::size_t kMostOpen = 32;

/// Where a chunk of a dataset is, for HDF5 and for messages. Made under the Hdf5Lock.
struct StoredChunk {
  StoredChunk(const Hdf5Dataset& data, std::int64_t start)
      : context(data.context()), offset(data.extents.size(), 0) {
    context.where = fmt::format("{}, record {}", data.where, start);
    offset[0] = static_cast<hsize_t>(start);
    hdf5_checked(H5Dget_chunk_storage_size(data.id.get(), offset.data(), &bytes), context, "find the chunk");
  }
  /// `to` has room for all bytes. Returns the mask of filters that were not applied.
  std::uint32_t read(const Hdf5Dataset& data, void* to) const {
    std::uint32_t skipped = 0;
    hdf5_checked(H5Dread_chunk(data.id.get(), H5P_DEFAULT, offset.data(), &skipped, to), context,
                 "read the chunk");
    return skipped;
  }

  Hdf5Context context;
  std::vector<hsize_t> offset;
  hsize_t bytes = 0;  ///< 0: there is none
};

/// Reads a chunk without filters. False: there is none, or HDF5 has to say what is wrong with it.
bool read_plain_chunk(const Hdf5Dataset& data, std::int64_t start, std::span<std::byte> to) {
  const Hdf5Lock lock;
  const StoredChunk chunk(data, start);
  if (chunk.bytes != to.size()) return false;
  chunk.read(data, to.data());
  return true;
}

}  // namespace

bool read_stored_chunk(const Hdf5Dataset& data, std::int64_t start, std::vector<std::byte>& bytes,
                       unsigned& skipped) {
  const Hdf5Lock lock;
  const StoredChunk chunk(data, start);
  if (chunk.bytes == 0) return false;
  bytes.resize(chunk.bytes);
  skipped = chunk.read(data, bytes.data());
  return true;
}

Hdf5FileLength::Hdf5FileLength(const Hdf5Dataset& data) {
  const Hdf5Handle file(hdf5_checked(H5Iget_file_id(data.id.get()), data.context(), "find the file"),
                        H5Fclose);
  const Hdf5Handle access(
      hdf5_checked(H5Fget_access_plist(file.get()), data.context(), "read how the file is opened"), H5Pclose);
  if (H5Pget_driver(access.get()) != H5FD_SEC2) return;
  void* handle = nullptr;
  hdf5_checked(H5Fget_vfd_handle(file.get(), H5P_DEFAULT, &handle), data.context(), "find the open file");
  struct stat status {};
  if (::fstat(*static_cast<const int*>(handle), &status) != 0) return;
  descriptor_ = *static_cast<const int*>(handle);
  bytes_ = status.st_size;
}

bool Hdf5FileLength::became_shorter() const {
  struct stat status {};
  return descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0 && status.st_size < bytes_;
}

void Hdf5Part::require_length(std::int64_t first) const {
  for (const auto& [length, data] :
       {std::pair{&features_file, &features}, {&labels_file, labels ? &*labels : nullptr}})
    if (data != nullptr && length->became_shorter())
      throw FileError("became shorter while it was read", fmt::format("{}, record {}", data->where, first),
                      "Copy or make the file again; start when it is complete.");
}

Hdf5Part::Hdf5Part(const std::string& path, const std::string& features_name, const std::string* labels_name,
                   const NetcdfOptions& netcdf, const std::vector<std::string>& columns, bool samples_last)
    : file(hdf5_open_file(path, hdf5_data_context(path))),
      features(open_hdf5_dataset(file.get(), path, features_name, samples_last)),
      features_file(features) {
  if (!columns.empty() || (features.file_class == H5T_COMPOUND && features.columns.empty()))
    choose_columns(features, columns, labels_name == nullptr ? "" : *labels_name);
  sequences = holds_sequences(features);
  if (!sequences) feature_numbers = Hdf5Numbers(features, netcdf);
  if (labels_name == nullptr) return;
  labels = open_hdf5_dataset(file.get(), path, *labels_name, samples_last);
  labels_file = Hdf5FileLength(*labels);
  check_same_count(samples_last);
  if (!text_labels()) label_numbers = Hdf5Numbers(*labels, for_labels(netcdf));
}

bool Hdf5Part::float_labels() const {
  return !text_labels() && label_kind_of(label_numbers.meaning.type()) == LabelKind::rows;
}

void Hdf5Part::check_same_count(bool samples_last) {
  const std::vector<hsize_t>&x = features.extents, &y = labels->extents;
  if (y[0] == x[0]) return;
  // A row of labels, as MATLAB and others have it.
  if (y.size() == 2 && y[0] == 1 && y[1] == x[0] && !text_labels()) return take_as_column(*labels);
  const auto axis = static_cast<std::size_t>(std::ranges::find(x, y[0]) - x.begin());
  std::string advice = "Name the labels of the same samples.";
  if (!samples_last && x.back() == y.back())
    advice = fmt::format("The last axes fit, of {}: write sample_axis: last.", y.back());
  else if (samples_last && (axis == x.size() - 1 || x.back() == y[0]))
    advice = "Without sample_axis: last the first axes fit: leave it out.";
  else if (axis < x.size())
    advice = fmt::format("Axis {} of {} has {}: store it as the first axis (numpy.moveaxis(x, {}, 0)).", axis,
                         features.name, y[0], axis);
  throw Error(ErrorKind::data,
              fmt::format("holds {} labels, but {} holds {} samples (their extents are {} and {})", y[0],
                          features.name, x[0], fmt::join(y, "x"), fmt::join(x, "x")),
              labels->where, advice);
}

Hdf5Store::Hdf5Store(Hdf5Form form, std::vector<File> files, std::int64_t rows_per_chunk)
    : form_(std::move(form)),
      files_(std::move(files)),
      rows_per_chunk_(rows_per_chunk),
      classes_(form_.classes),
      parts_(files_.size()) {
  std::int64_t samples = 0;
  for (const File& file : files_) {
    first_sample_.push_back(samples);
    samples += file.rows.last - file.rows.first;
  }
}

Hdf5Store::~Hdf5Store() {
  const Hdf5Lock lock;
  parts_.clear();
}

std::shared_ptr<Hdf5Part> Hdf5Store::open(std::size_t file) {
  if (parts_[file] == nullptr) {
    if (opened_.size() == kMostOpen) {
      parts_[opened_.front()] = nullptr;
      opened_.erase(opened_.begin());
    }
    try {
      parts_[file] = std::make_shared<Hdf5Part>(files_[file].path, form_.features_name,
                                                form_.labels_name ? &*form_.labels_name : nullptr,
                                                form_.netcdf, form_.columns, form_.samples_last);
    } catch (const Error& error) {
      throw FileError(error.what_happened(), error.where(), error.advice());
    }
    if (parts_[file]->features.rows() < files_[file].rows.last)
      throw FileError("became shorter while it was read", parts_[file]->features.where,
                      "Start when the file is complete.");
  } else {
    opened_.erase(std::ranges::find(opened_, file));
  }
  opened_.push_back(file);
  return parts_[file];
}

void Hdf5Store::read(std::int64_t first, std::int64_t count, const SampleRoom& to) {
  auto file =
      static_cast<std::size_t>(std::ranges::upper_bound(first_sample_, first) - first_sample_.begin()) - 1;
  const std::int64_t row_bytes =
      form_.feature_shape.num_elements() * static_cast<std::int64_t>(size_in_bytes(form_.feature_dtype));
  for (std::int64_t done = 0; done < count; ++file) {
    const std::int64_t row = files_[file].rows.first + first + done - first_sample_[file];
    const RowRange rows{row, std::min(files_[file].rows.last, row + count - done)};
    SampleRoom here = to;
    here.features = static_cast<char*>(to.features) + done * row_bytes;
    if (here.label_indices != nullptr) here.label_indices += done * form_.label_columns;
    if (here.label_rows != nullptr) here.label_rows += done * form_.label_columns;
    // The last owner of a part must hold the lock.
    std::optional<Hdf5Lock> lock(std::in_place);
    const std::shared_ptr<Hdf5Part> part = open(file);
    if (part->labels) read_labels(*part, rows, here);
    lock.reset();
    try {
      read_features(*part, rows, here.features);
      part->require_length(rows.first);
    } catch (...) {
      lock.emplace();
      part->require_length(rows.first);  // rather than what the values look like
      throw;
    }
    lock.emplace();
    done += rows.last - rows.first;
  }
}

void Hdf5Store::read_features(const Hdf5Part& part, const RowRange& rows, void* to) const {
  if (form_.sequence) {
    const Hdf5Lock lock;
    return read_sequences(part.features, rows.first, rows.last - rows.first,
                          [&](std::int64_t i, std::span<const float> values) {
                            form_.sequence->write(
                                values, part.features.name,
                                static_cast<float*>(to) + i * form_.sequence->sample_values());
                          });
  }
  const std::int64_t values = form_.feature_shape.num_elements();
  part.feature_numbers.read(
      (rows.last - rows.first) * values, to, [&](void* stored) { read_as_stored(part, rows, stored); },
      [&](std::int64_t i) {
        return fmt::format("{}, record {}", part.features.where, rows.first + i / values);
      });
}

/// Channels last.
void Hdf5Store::read_as_stored(const Hdf5Part& part, const RowRange& rows, void* to) const {
  const Hdf5Dataset& data = part.features;
  if (!form_.channels.empty()) return read_chosen_channels(part, rows, to);
  if (!form_.channels_first) return read_rows(part, rows, to);
  const std::size_t value_bytes = size_in_bytes(part.feature_numbers.stored.dtype);
  const std::int64_t count = rows.last - rows.first;
  std::vector<char> scratch(static_cast<std::size_t>(count * form_.feature_shape.num_elements()) *
                            value_bytes);
  read_rows(part, rows, scratch.data());
  const auto channels = static_cast<std::int64_t>(data.extents[1]);
  channels_to_last(value_bytes, scratch.data(), to, count, channels, data.values_per_row() / channels);
}

/// Channels last. Of layout channels_first, HDF5 reads the chosen channels alone, unless chunks are
/// decompressed outside of its lock, which hold all channels.
void Hdf5Store::read_chosen_channels(const Hdf5Part& part, const RowRange& rows, void* to) const {
  const Hdf5Dataset& data = part.features;
  const std::size_t value_bytes = size_in_bytes(part.feature_numbers.stored.dtype);
  const std::int64_t count = rows.last - rows.first, all = num_channels(data, form_.channels_first);
  const std::int64_t positions = all == 0 ? 0 : data.values_per_row() / all;
  std::vector<std::int64_t> ascending = form_.channels, place;
  std::ranges::sort(ascending);
  std::vector<char> scratch;
  const auto room = [&](std::int64_t channels) {
    scratch.resize(static_cast<std::size_t>(count * channels * positions) * value_bytes);
    return scratch.data();
  };
  if (!form_.channels_first || data.filters || !data.axes.empty()) {
    read_rows(part, rows, room(all));
    return choose_channels(value_bytes, scratch.data(), to, count, all, positions, form_.channels_first,
                           form_.channels);
  }
  {
    const Hdf5Lock lock;
    read_channels(data, rows, ascending, part.feature_numbers.stored.memory.get(),
                  room(static_cast<std::int64_t>(ascending.size())));
  }
  for (const std::int64_t channel : form_.channels)
    place.push_back(std::ranges::lower_bound(ascending, channel) - ascending.begin());
  choose_channels(value_bytes, scratch.data(), to, count, static_cast<std::int64_t>(place.size()), positions,
                  true, place);
}

/// Reads rows by HDF5, which has its lock. False: they can be read chunk by chunk instead.
bool Hdf5Store::read_by_hdf5(const Hdf5Part& part, const RowRange& rows, void* to, bool any_way) const {
  const Hdf5Lock lock;
  const Hdf5Dataset& data = part.features;
  const hid_t type = part.feature_numbers.stored.memory.get();
  if (!any_way && (data.filters || data.direct_chunks) && H5Tequal(data.file_type.get(), type) > 0)
    return false;
  read_slab(data, rows.first, rows.last - rows.first, type, to);
  return true;
}

/// Reads rows as they are in the file. Compressed chunks are decompressed outside
/// HDF5's lock.
void Hdf5Store::read_rows(const Hdf5Part& part, const RowRange& rows, void* to) const {
  if (read_by_hdf5(part, rows, to, false)) return;
  const Hdf5Dataset& data = part.features;
  const std::int64_t row_bytes =
      data.values_per_row() * static_cast<std::int64_t>(size_in_bytes(part.feature_numbers.stored.dtype));
  const auto chunk = static_cast<std::int64_t>(data.rows_per_chunk);
  std::vector<std::byte> stored, scratch, whole;
  for (std::int64_t start = rows.first / chunk * chunk; start < rows.last; start += chunk) {
    const RowRange wanted{std::max(start, rows.first), std::min(start + chunk, rows.last)};
    std::byte* const place = static_cast<std::byte*>(to) + (wanted.first - rows.first) * row_bytes;
    if (data.direct_chunks) {
      const bool all = wanted.last - wanted.first == chunk;
      if (!all) whole.resize(static_cast<std::size_t>(chunk * row_bytes));
      if (!read_plain_chunk(data, start,
                            {all ? place : whole.data(), static_cast<std::size_t>(chunk * row_bytes)}))
        read_by_hdf5(part, wanted, place, true);
      else if (!all)
        std::copy_n(whole.data() + (wanted.first - start) * row_bytes,
                    (wanted.last - wanted.first) * row_bytes, place);
      continue;
    }
    unsigned skipped = 0;
    if (!read_stored_chunk(data, start, stored, skipped)) {  // never written: fill values
      read_by_hdf5(part, wanted, place, true);
      continue;
    }
    const auto bytes = static_cast<std::size_t>(chunk * row_bytes);
    const std::string where = fmt::format("{}, record {}", data.where, start);
    if (wanted.last - wanted.first == chunk) {
      data.filters->decode(stored, skipped, {place, bytes}, scratch, where);
      continue;
    }
    whole.resize(bytes);
    data.filters->decode(stored, skipped, whole, scratch, where);
    std::copy_n(whole.data() + (wanted.first - start) * row_bytes, (wanted.last - wanted.first) * row_bytes,
                place);
  }
}

void Hdf5Store::read_text_labels(const Hdf5Dataset& data, const RowRange& rows, std::int32_t* to) const {
  read_texts(data, rows, [&](std::int64_t i, std::string_view text) { to[i] = classes_.index_of(text); });
}

void Hdf5Store::read_labels(const Hdf5Part& part, const RowRange& rows, const SampleRoom& to) const {
  const Hdf5Dataset& data = *part.labels;
  const std::int64_t count = rows.last - rows.first, values = count * form_.label_columns;
  if (form_.label_columns == 0) return;
  if (part.text_labels()) return read_text_labels(data, rows, to.label_indices);
  const Hdf5Numbers& numbers = part.label_numbers;
  std::vector<std::int64_t> room(static_cast<std::size_t>(values));  // for values of any type
  numbers.read(data, rows.first, count, room.data());
  convert_labels(room.data(), numbers.meaning.type(), values, to, [&](std::int64_t i) {
    return fmt::format("{}, record {}", data.where, rows.first + i / form_.label_columns);
  });
}

}  // namespace lockstep
