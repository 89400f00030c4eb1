// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/sample_file.h"

#include "core/error.h"

namespace lockstep {

DType stored_type(SampleFormat format, DType type) {
  switch (format) {
    case SampleFormat::csv:
      return DType::f32;
    case SampleFormat::npy:
    case SampleFormat::npz:
      return type == DType::bf16 ? DType::f32 : type;  // NumPy has no bfloat16
    case SampleFormat::hdf5:
    case SampleFormat::tfrecord:
    case SampleFormat::png:
    case SampleFormat::jpeg:
      break;
  }
  return type;
}

int files_of(SampleFormat format, bool labels) { return format == SampleFormat::npy && labels ? 2 : 1; }

std::unique_ptr<SampleWriter> make_sample_writer(SampleFormat format, const std::vector<std::string>& paths,
                                                 SampleFileForm form, const SampleFileOptions& options) {
  LOCKSTEP_CHECK(static_cast<int>(paths.size()) == files_of(format, form.label_columns > 0));
  switch (format) {
    case SampleFormat::hdf5:
      return make_sample_hdf5(paths[0], std::move(form), options);
    case SampleFormat::npy:
      return make_sample_npy(paths, std::move(form));
    case SampleFormat::npz:
      return make_sample_npz(paths[0], std::move(form), options);
    case SampleFormat::tfrecord:
      return make_sample_tfrecord(paths[0], std::move(form), options);
    case SampleFormat::csv:
      return make_sample_csv(paths[0], std::move(form), options);
    case SampleFormat::png:
    case SampleFormat::jpeg:
      break;
  }
  LOCKSTEP_CHECK(false);
  return nullptr;
}

std::string label_bytes(const SampleFileForm& form, const SampleBlock& block) {
  constexpr std::size_t kLabelBytes = 4;
  const auto bytes = static_cast<std::size_t>(block.count * form.label_columns) * kLabelBytes;
  const void* const labels =
      form.labels_are_indices ? static_cast<const void*>(block.label_indices) : block.label_rows;
  return bytes == 0 ? std::string() : std::string(static_cast<const char*>(labels), bytes);
}

}  // namespace lockstep
