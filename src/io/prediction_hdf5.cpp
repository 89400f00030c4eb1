// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Predictions as HDF5. Attributes of the file: format, version, checkpoint, checkpoint_digest, global_step,
// input. Datasets, of which those of a named head are in a group with its name:
//
//   sample       int64 {samples}: the number of the sample in the input, from 0; of the evaluation set: in
//   its
//                files
//   outputs      float32 {samples, output...}; the attribute `quantity` says what they are: probability,
//                logit or value
//   spread       float32, as outputs: the standard deviation over the members of an ensemble
//   value_names  texts {values}: the names of the values of a sample, if they have names
//   class        int32 {samples, positions...}: the most probable class, for exclusive classes
//   labels       the true labels, if the input has them: int32 class indices, of the extents of `class` if
//                there is one per position; float32 targets, of the extents of `outputs` if there is one per
//                value; otherwise {samples, labels}
//   class_names  texts {classes}, if known
//
// and sample_name, texts {samples}: where each sample comes from, if names are written; and texts {samples}
// with the names that the data have for their samples (`id`), if they have some.
#include <algorithm>
#include <array>
#include <optional>

#include "io/hdf5_attribute.h"
#include "io/hdf5_output.h"
#include "io/prediction_rows.h"

namespace lockstep {

namespace {

constexpr std::int64_t kVersion = 1;

using Extents = std::vector<hsize_t>;

/// {samples, extents...} of which the last `without` are left out.
Extents extents_of(std::int64_t samples, const Shape& shape, int without) {
  Extents extents{static_cast<hsize_t>(samples)};
  for (int axis = 0; axis + without < shape.rank(); ++axis)
    extents.push_back(static_cast<hsize_t>(shape[axis]));
  return extents;
}

/// The extents of the true labels: those of `class` or of `outputs` where the number fits.
Extents label_extents(std::int64_t samples, const PredictedHead& head) {
  if (head.labels_are_indices && head.labels == head.positions()) return extents_of(samples, head.shape, 1);
  if (!head.labels_are_indices && head.labels == head.values()) return extents_of(samples, head.shape, 0);
  return {static_cast<hsize_t>(samples), static_cast<hsize_t>(head.labels)};
}

class PredictionHdf5 final : public PredictionWriter {
 public:
  PredictionHdf5(OutputFile& output, PredictionInfo info)
      : info_(std::move(info)), context_{ErrorKind::output, output.path(), "Choose another --output."} {
    driver_.descriptor = output.seekable();
    const Hdf5Lock lock;
    const Hdf5Handle access = hdf5_access_properties(context_);
    hdf5_checked(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_LATEST), context_,
                 "choose the format");
    hdf5_write_to(access, driver_, context_);
    file_ = {hdf5_checked(H5Fcreate(output.path().c_str(), H5F_ACC_TRUNC,
                                    without_times(H5P_FILE_CREATE).get(), access.get()),
                          context_, "create"),
             H5Fclose};
    write_attribute(file_.get(), "format", std::string("lockstep predictions"), context_);
    write_attribute(file_.get(), "version", kVersion, context_);
    write_attribute(file_.get(), "checkpoint", info_.checkpoint, context_);
    write_attribute(file_.get(), "checkpoint_digest", info_.checkpoint_digest, context_);
    write_attribute(file_.get(), "global_step", info_.global_step, context_);
    write_attribute(file_.get(), "input", info_.input, context_);
    sample_ = create(file_.get(), "sample", H5T_STD_I64LE, {static_cast<hsize_t>(info_.samples)});
    for (const PredictedHead& head : info_.heads) add_head(head);
    if (info_.sample_name) write_texts_of_samples("sample_name", info_.sample_name);
    if (info_.id) write_texts_of_samples(info_.id_name.c_str(), info_.id);
    find_places();
    check();
  }

  void add(std::int64_t n, std::span<const PredictedRows> rows) override {
    rows_->write(done_, n, rows);
    done_ += n;
  }

  std::vector<std::uint64_t> offsets() const override { return offsets_; }

  void finish() override {
    const Hdf5Lock lock;
    sample_.close();
    heads_.clear();
    hdf5_checked(file_.close(), context_, "close");
    check();
  }

 private:
  struct Datasets {
    Hdf5Handle group, outputs, spread, classes, labels;
  };

  /// Creation properties of an object without times: equal predictions make equal files.
  Hdf5Handle without_times(hid_t kind) const {
    Hdf5Handle properties(hdf5_checked(H5Pcreate(kind), context_, "create properties"), H5Pclose);
    hdf5_checked(H5Pset_obj_track_times(properties.get(), false), context_, "switch off times");
    return properties;
  }

  void add_head(const PredictedHead& head) {
    Datasets& made = heads_.emplace_back();
    hid_t in = file_.get();
    if (!head.name.empty()) {
      made.group = {hdf5_checked(H5Gcreate2(in, head.name.c_str(), H5P_DEFAULT,
                                            without_times(H5P_GROUP_CREATE).get(), H5P_DEFAULT),
                                 context_, "create a group"),
                    H5Gclose};
      in = made.group.get();
    }
    made.outputs = create(in, "outputs", H5T_IEEE_F32LE, extents_of(info_.samples, head.shape, 0));
    write_attribute(made.outputs.get(), "quantity", std::string(head.quantity), context_);
    if (!head.as_trained.empty())
      write_attribute(made.outputs.get(), "as_trained", head.as_trained, context_);
    if (head.has_spread)
      made.spread = create(in, "spread", H5T_IEEE_F32LE, extents_of(info_.samples, head.shape, 0));
    if (head.has_classes)
      made.classes = create(in, "class", H5T_STD_I32LE, extents_of(info_.samples, head.shape, 1));
    if (head.labels > 0)
      made.labels = create(in, "labels", head.labels_are_indices ? H5T_STD_I32LE : H5T_IEEE_F32LE,
                           label_extents(info_.samples, head));
    if (!head.class_names.empty()) write_names(in, "class_names", head.class_names);
    if (!head.value_names.empty()) write_names(in, "value_names", head.value_names);
  }

  void write_texts_of_samples(const char* dataset, const std::function<std::string(std::int64_t)>& text) {
    std::vector<std::string> texts;
    for (std::int64_t i = 0; i < info_.samples; ++i) texts.push_back(text(i));
    write_names(file_.get(), dataset, texts);
  }

  Hdf5Handle create(hid_t in, const char* name, hid_t type, const Extents& extents) {
    const Hdf5Handle space(
        hdf5_checked(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), context_,
                     "describe a shape"),
        H5Sclose);
    const Hdf5Handle layout = without_times(H5P_DATASET_CREATE);
    hdf5_checked(H5Pset_fill_time(layout.get(), H5D_FILL_TIME_NEVER), context_, "switch off filling");
    hdf5_checked(H5Pset_alloc_time(layout.get(), H5D_ALLOC_TIME_EARLY), context_, "reserve space");
    return {hdf5_checked(H5Dcreate2(in, name, type, space.get(), H5P_DEFAULT, layout.get(), H5P_DEFAULT),
                         context_, fmt::format("create the dataset {}", name)),
            H5Dclose};
  }

  void write_names(hid_t in, const char* dataset_name, const std::vector<std::string>& names) {
    std::size_t width = 1;
    for (const std::string& name : names) width = std::max(width, name.size());
    const Hdf5Handle type(hdf5_checked(H5Tcopy(H5T_C_S1), context_, "describe texts"), H5Tclose);
    hdf5_checked(H5Tset_size(type.get(), width), context_, "describe texts");
    hdf5_checked(H5Tset_cset(type.get(), H5T_CSET_UTF8), context_, "describe texts");
    hdf5_checked(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), context_, "describe texts");
    std::string block;
    for (const std::string& name : names) block += name + std::string(width - name.size(), '\0');
    const Hdf5Handle dataset = create(in, dataset_name, type.get(), {names.size()});
    hdf5_checked(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, block.data()), context_,
                 fmt::format("write {}", dataset_name));
  }

  /// Datasets have their places from the start, and HDF5 does not touch their rows.
  void find_places() {
    offsets_.push_back(place_of(sample_));
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      offsets_.push_back(place_of(heads_[i].outputs));
      if (info_.heads[i].has_spread) offsets_.push_back(place_of(heads_[i].spread));
      if (info_.heads[i].has_classes) offsets_.push_back(place_of(heads_[i].classes));
      if (info_.heads[i].labels > 0) offsets_.push_back(place_of(heads_[i].labels));
    }
    rows_.emplace(driver_.descriptor, context_.where, info_.heads, offsets_, info_.number);
  }

  std::uint64_t place_of(const Hdf5Handle& dataset) const {
    const haddr_t offset = H5Dget_offset(dataset.get());
    LOCKSTEP_CHECK(offset != HADDR_UNDEF || info_.samples == 0, "a dataset has no place in the file");
    return offset;
  }

  /// Throws the error that the file driver has hidden from HDF5.
  void check() const {
    if (driver_.error != 0) throw file_error(ErrorKind::output, "write", context_.where, driver_.error);
  }

  PredictionInfo info_;
  Hdf5Context context_;
  Hdf5Output driver_;  // before the file, which writes to it when it is closed
  Hdf5Handle file_, sample_;
  std::vector<Datasets> heads_;
  std::vector<std::uint64_t> offsets_;
  std::optional<PredictionRowWriter> rows_;
  std::int64_t done_ = 0;
};

}  // namespace

std::unique_ptr<PredictionWriter> make_prediction_hdf5(OutputFile& output, PredictionInfo info) {
  return std::make_unique<PredictionHdf5>(output, std::move(info));
}

}  // namespace lockstep
