// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What people are told about datasets of HDF5 files: what is done to stored numbers, and how chunks are
// stored.
#include <algorithm>
#include <ctime>

#include "data/data_files.h"
#include "data/reader_options.h"
#include "data/readers/hdf5_axes.h"
#include "data/readers/hdf5_options.h"
#include "data/stored_chunks.h"
#include "data/value_notes.h"

namespace lockstep {

namespace {

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Processor time for a chunk, over some of them that are evenly spread.
double unpack_seconds(const Hdf5Dataset& data, std::size_t chunk_bytes) {
  constexpr double kEnough = 0.2;
  constexpr std::int64_t kMost = 64;
  const auto step = static_cast<std::int64_t>(data.rows_per_chunk);
  const std::int64_t chunks = (data.rows() + step - 1) / step, some = std::min(kMost, chunks);
  std::vector<std::byte> stored, scratch, whole(chunk_bytes);
  double seconds = 0;
  std::int64_t done = 0;
  for (std::int64_t i = 0; i < some && seconds < kEnough; ++i) {
    const std::int64_t start = i * chunks / some * step;
    unsigned skipped = 0;
    if (!read_stored_chunk(data, start, stored, skipped)) continue;
    const double before = thread_seconds();
    data.filters->decode(stored, skipped, whole, scratch, data.where);
    seconds += thread_seconds() - before;
    ++done;
  }
  return done == 0 ? 0 : seconds / static_cast<double>(done);
}

/// How many samples a window leaves.
std::string note_of(const StepWindow& window, const Params& params, const std::string& base_directory) {
  std::int64_t steps = 0;
  for (const std::string& path : files_of_path(params, base_directory))
    steps += hdf5_part(path, params).features.rows();
  if (const std::optional<RowRange> rows = rows_option(params))
    steps = checked_rows(rows, steps, "").last - rows->first;
  const std::int64_t samples = reader_table().find("hdf5")->make(params, base_directory).size;
  const std::int64_t at_ends = window.length(true) - 1;
  return fmt::format("window: {} steps give {} samples; the others lack steps at the ends of the rows ({}){}",
                     steps, samples, at_ends,
                     steps - samples > at_ends
                         ? fmt::format(" or around gaps of time ({})", steps - samples - at_ends)
                         : "");
}

}  // namespace

std::vector<std::string> value_notes(std::string_view format, const Params& params,
                                     const std::string& base_directory) {
  if (format != "hdf5" || params.as<Hdf5Options>().groups) return {};
  const Hdf5Lock lock;
  const Hdf5Part part = hdf5_part(files_of_path(params, base_directory).front(), params);
  std::vector<std::string> notes;
  const auto add = [&](const Hdf5Dataset& data, const NetcdfValues& values) {
    if (const std::string text = axes_text(data); !text.empty())
      notes.push_back(fmt::format("{}: {}", data.name, text));
    if (const std::string text = values.text(); !text.empty())
      notes.push_back(fmt::format("{}: {}", data.name, text));
  };
  add(part.features, part.feature_numbers.meaning);
  if (part.labels) add(*part.labels, part.label_numbers.meaning);
  if (const auto& window = params.as<Hdf5Options>().window)
    notes.push_back(note_of(*window, params, base_directory));
  return notes;
}

std::optional<StoredChunks> stored_chunks(std::string_view format, const Params& params,
                                          const std::string& base_directory) {
  if (format != "hdf5" || params.as<Hdf5Options>().groups) return std::nullopt;
  const Hdf5Lock lock;
  const std::string path = files_of_path(params, base_directory).front();
  const Hdf5Handle file = hdf5_open_file(path, hdf5_data_context(path));
  const auto options = params.as<Hdf5Options>();
  const Hdf5Dataset data = open_hdf5_dataset(file.get(), path, options.features, options.samples_last);
  if (!data.axes.empty()) return std::nullopt;  // read into memory as a whole
  const Hdf5Context context = data.context();
  const Hdf5Handle creation(hdf5_checked(H5Dget_create_plist(data.id.get()), context, "read the layout"),
                            H5Pclose);
  if (H5Pget_layout(creation.get()) != H5D_CHUNKED) return std::nullopt;
  std::vector<hsize_t> extents(data.extents.size());
  hdf5_checked(H5Pget_chunk(creation.get(), static_cast<int>(extents.size()), extents.data()), context,
               "read the chunk size");
  StoredChunks chunks{.where = data.where,
                      .samples = data.rows(),
                      .samples_per_chunk = static_cast<std::int64_t>(data.rows_per_chunk),
                      .chunk_bytes = static_cast<double>(H5Tget_size(data.file_type.get()))};
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    chunks.chunk_bytes *= static_cast<double>(extents[axis]);
    if (axis > 0) chunks.whole_samples = chunks.whole_samples && extents[axis] == data.extents[axis];
  }
  chunks.compressed = H5Pget_nfilters(creation.get()) > 0;
  if (data.filters && chunks.chunk_bytes <= 1e10)
    chunks.unpack_seconds = unpack_seconds(data, static_cast<std::size_t>(chunks.chunk_bytes));
  return chunks;
}

}  // namespace lockstep
