// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples as HDF5. Attributes of the file: format, version, source_fingerprint. Datasets, whose names are
// options:
//
//   features   {samples, shape...} in chunks of whole samples
//   labels     int32 class indices or float32 targets, {samples} or {samples, columns}; contiguous, or in
//              chunks if they are compressed or have checksums. Its attribute class_names has a text per
//              class, if the names are known.
//
// Chunks of features are filtered by the threads that encode blocks and written as they are, past HDF5's own
// filters, which run on one thread.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "io/hdf5_attribute.h"
#include "io/hdf5_chunk.h"
#include "io/hdf5_output.h"
#include "io/output_file.h"
#include "io/sample_file.h"

namespace lockstep {

namespace {

constexpr std::int64_t kVersion = 1;
/// Rows of labels that are filtered together.
constexpr std::int64_t kLabelChunk = 16384;
/// HDF5 counts the bytes of a chunk with 32 bits.
constexpr std::int64_t kLargestChunk = std::int64_t{0xFFFFFFFF};
/// A larger attribute is stored elsewhere than in the object's header, which has 64 KiB.
constexpr std::size_t kLargestAttribute = 60000;

using Extents = std::vector<hsize_t>;

class SampleHdf5 final : public SampleWriter {
 public:
  SampleHdf5(const std::string& path, SampleFileForm form, const SampleFileOptions& options)
      : form_(std::move(form)),
        options_(options),
        output_(path, {}),
        context_{ErrorKind::output, path, "Choose another name for the output."} {
    if (form_.chunk_samples * form_.sample_bytes() > kLargestChunk)
      throw Error(ErrorKind::config,
                  fmt::format("a chunk of {} samples would have {} bytes, but HDF5 allows 4 GiB",
                              form_.chunk_samples, form_.chunk_samples * form_.sample_bytes()),
                  path, "Give a smaller --chunk.");
    driver_.descriptor = output_.seekable();
    const Hdf5Lock lock;
    const Hdf5Handle access = hdf5_access_properties(context_);
    hdf5_checked(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_LATEST), context_,
                 "choose the format");
    hdf5_write_to(access, driver_, context_);
    file_ = {
        hdf5_checked(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, properties(H5P_FILE_CREATE).get(), access.get()),
                     context_, "create"),
        H5Fclose};
    write_attribute(file_.get(), "format", std::string("lockstep samples"), context_);
    write_attribute(file_.get(), "version", kVersion, context_);
    write_attribute(file_.get(), "source_fingerprint", form_.source_fingerprint, context_);
    create_features();
    if (form_.label_columns > 0) create_labels();
    check();
  }

  EncodedBlock encode(const SampleBlock& block) const override {
    EncodedBlock encoded{.count = block.count, .pieces = {}, .skipped_filters = {}};
    const auto sample = static_cast<std::size_t>(form_.sample_bytes());
    const auto whole = static_cast<std::size_t>(form_.chunk_samples) * sample;
    const auto* const bytes = static_cast<const std::byte*>(block.features);
    for (std::int64_t first = 0; first < block.count; first += form_.chunk_samples) {
      const auto own = static_cast<std::size_t>(std::min(form_.chunk_samples, block.count - first)) * sample;
      std::span<const std::byte> chunk(bytes + static_cast<std::size_t>(first) * sample, own);
      std::vector<std::byte> filled;
      if (own < whole) {  // the last chunk of the file
        filled.assign(chunk.begin(), chunk.end());
        filled.resize(whole);
        chunk = filled;
      }
      encoded.pieces.emplace_back();
      encoded.skipped_filters.push_back(filters_->encode(chunk, options_.gzip, encoded.pieces.back()));
    }
    encoded.pieces.push_back(label_bytes(form_, block));
    return encoded;
  }

  void write(const EncodedBlock& block) override {
    const Hdf5Lock lock;
    Extents at(static_cast<std::size_t>(form_.shape.rank()) + 1, 0);
    for (std::size_t i = 0; i + 1 < block.pieces.size(); ++i) {
      at[0] = static_cast<hsize_t>(done_ + static_cast<std::int64_t>(i) * form_.chunk_samples);
      hdf5_checked(H5Dwrite_chunk(features_.get(), H5P_DEFAULT, block.skipped_filters[i], at.data(),
                                  block.pieces[i].size(), block.pieces[i].data()),
                   context_, "write samples");
    }
    if (form_.label_columns > 0) write_labels(block.count, block.pieces.back());
    done_ += block.count;
    check();
  }

  void finish() override {
    {
      const Hdf5Lock lock;
      hdf5_checked(features_.close(), context_, "close");
      hdf5_checked(labels_.close(), context_, "close");
      hdf5_checked(file_.close(), context_, "close");
    }
    check();
    output_.publish();
  }

 private:
  /// Creation properties of an object without times: equal samples make equal files.
  Hdf5Handle properties(hid_t kind) const {
    Hdf5Handle made(hdf5_checked(H5Pcreate(kind), context_, "create properties"), H5Pclose);
    hdf5_checked(H5Pset_obj_track_times(made.get(), false), context_, "switch off times");
    if (kind == H5P_DATASET_CREATE)
      hdf5_checked(H5Pset_fill_time(made.get(), H5D_FILL_TIME_NEVER), context_, "switch off filling");
    return made;
  }

  void add_filters(const Hdf5Handle& creation, std::size_t value_bytes) const {
    if (options_.gzip > 0 && value_bytes > 1)
      hdf5_checked(H5Pset_shuffle(creation.get()), context_, "choose shuffle");
    if (options_.gzip > 0)
      hdf5_checked(H5Pset_deflate(creation.get(), static_cast<unsigned>(options_.gzip)), context_,
                   "choose gzip");
    if (options_.fletcher32) hdf5_checked(H5Pset_fletcher32(creation.get()), context_, "choose fletcher32");
  }

  Hdf5Handle create(const std::string& name, hid_t type, const Extents& extents,
                    const Hdf5Handle& creation) const {
    const Hdf5Handle space(
        hdf5_checked(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), context_,
                     "describe a shape"),
        H5Sclose);
    const Hdf5Handle links(hdf5_checked(H5Pcreate(H5P_LINK_CREATE), context_, "create properties"), H5Pclose);
    hdf5_checked(H5Pset_create_intermediate_group(links.get(), 1), context_, "create groups");
    return {hdf5_checked(H5Dcreate2(file_.get(), name.c_str(), type, space.get(), links.get(), creation.get(),
                                    H5P_DEFAULT),
                         context_, fmt::format("create the dataset {}", name)),
            H5Dclose};
  }

  void create_features() {
    Extents extents{static_cast<hsize_t>(form_.samples)};
    for (const std::int64_t extent : form_.shape.extents()) extents.push_back(static_cast<hsize_t>(extent));
    Extents chunk = extents;
    chunk[0] = static_cast<hsize_t>(form_.chunk_samples);
    const Hdf5Handle creation = properties(H5P_DATASET_CREATE);
    hdf5_checked(H5Pset_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data()), context_,
                 "choose the chunks");
    add_filters(creation, size_in_bytes(form_.type));
    std::optional<Hdf5Handle> half;
    hid_t type = hdf5_file_type(form_.type);
    if (form_.type == DType::f16 || form_.type == DType::bf16)
      type = half.emplace(hdf5_half_type(form_.type, context_)).get();
    features_ = create(options_.features, type, extents, creation);
    // HDF5 fills in the filters' parameters when it makes the dataset.
    const Hdf5Handle made(hdf5_checked(H5Dget_create_plist(features_.get()), context_, "read the properties"),
                          H5Pclose);
    filters_ = ChunkFilters::of(made.get(), context_);
    LOCKSTEP_CHECK(filters_);
  }

  void create_labels() {
    Extents extents{static_cast<hsize_t>(form_.samples)};
    if (form_.label_columns > 1) extents.push_back(static_cast<hsize_t>(form_.label_columns));
    const Hdf5Handle creation = properties(H5P_DATASET_CREATE);
    if (options_.gzip > 0 || options_.fletcher32) {
      Extents chunk = extents;
      chunk[0] =
          static_cast<hsize_t>(std::clamp<std::int64_t>(kLabelChunk / form_.label_columns, 1, form_.samples));
      hdf5_checked(H5Pset_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data()), context_,
                   "choose the chunks");
      add_filters(creation, sizeof(float));
    }
    std::size_t bytes = 0;
    for (const std::string& name : form_.class_names) bytes = std::max(bytes, name.size());
    if (bytes * form_.class_names.size() > kLargestAttribute)
      hdf5_checked(H5Pset_attr_phase_change(creation.get(), 0, 0), context_, "choose dense attributes");
    labels_ =
        create(options_.labels, form_.labels_are_indices ? H5T_STD_I32LE : H5T_IEEE_F32LE, extents, creation);
    if (!form_.class_names.empty())
      write_attribute(labels_.get(), "class_names", form_.class_names, context_);
  }

  void write_labels(std::int64_t count, const std::string& bytes) {
    Extents first{static_cast<hsize_t>(done_)}, extents{static_cast<hsize_t>(count)};
    if (form_.label_columns > 1) {
      first.push_back(0);
      extents.push_back(static_cast<hsize_t>(form_.label_columns));
    }
    const Hdf5Handle memory(
        hdf5_checked(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), context_,
                     "describe a shape"),
        H5Sclose);
    const Hdf5Handle space(hdf5_checked(H5Dget_space(labels_.get()), context_, "read the shape"), H5Sclose);
    hdf5_checked(
        H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, first.data(), nullptr, extents.data(), nullptr),
        context_, "select rows");
    hdf5_checked(H5Dwrite(labels_.get(), form_.labels_are_indices ? H5T_NATIVE_INT32 : H5T_NATIVE_FLOAT,
                          memory.get(), space.get(), H5P_DEFAULT, bytes.data()),
                 context_, "write labels");
  }

  /// Throws the error that the file driver has hidden from HDF5.
  void check() const {
    if (driver_.error != 0) throw file_error(ErrorKind::output, "write", context_.where, driver_.error);
  }

  SampleFileForm form_;
  SampleFileOptions options_;
  OutputFile output_;
  Hdf5Context context_;
  Hdf5Output driver_;  // before the file, which writes to it when it is closed
  Hdf5Handle file_, features_, labels_;
  std::optional<ChunkFilters> filters_;
  std::int64_t done_ = 0;
};

}  // namespace

std::unique_ptr<SampleWriter> make_sample_hdf5(const std::string& path, SampleFileForm form,
                                               const SampleFileOptions& options) {
  return std::make_unique<SampleHdf5>(path, std::move(form), options);
}

}  // namespace lockstep
