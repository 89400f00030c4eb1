// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples as TFRecord. Features of float32 are a list of floats, others the numbers as they are in memory, in
// one value of bytes. Class indices are a list of int64, other labels a list of floats.
#include <bit>

#include "io/example.h"
#include "io/sample_file.h"
#include "io/tfrecord_writer.h"

namespace lockstep {

namespace {

static_assert(std::endian::native == std::endian::little, "the order of raw numbers in the records");

class SampleTfrecord final : public SampleWriter {
 public:
  SampleTfrecord(const std::string& path, SampleFileForm form, const SampleFileOptions& options)
      : form_(std::move(form)),
        features_(options.features),
        labels_(options.labels),
        file_(path, options.gzip > 0 ? TfrecordCompression::gzip : TfrecordCompression::none,
              options.gzip > 0 ? options.gzip : 1) {}

  EncodedBlock encode(const SampleBlock& block) const override {
    EncodedBlock encoded{.count = block.count, .pieces = {}, .skipped_filters = {}};
    const auto columns = static_cast<std::size_t>(form_.label_columns);
    const auto bytes = static_cast<std::size_t>(form_.sample_bytes());
    std::vector<std::int64_t> indices(columns);
    for (std::int64_t i = 0; i < block.count; ++i) {
      const char* const sample = static_cast<const char*>(block.features) + i * form_.sample_bytes();
      ExampleBuilder example;
      if (form_.type == DType::f32)
        example.add_floats(features_, {reinterpret_cast<const float*>(sample), bytes / sizeof(float)});
      else
        example.add_bytes(features_, std::string_view(sample, bytes));
      const auto first = static_cast<std::size_t>(i) * columns;
      if (block.label_rows != nullptr) example.add_floats(labels_, {block.label_rows + first, columns});
      if (block.label_indices != nullptr) {
        indices.assign(block.label_indices + first, block.label_indices + first + columns);
        example.add_integers(labels_, indices);
      }
      encoded.pieces.push_back(example.serialized());
    }
    return encoded;
  }

  void write(const EncodedBlock& block) override {
    for (const std::string& record : block.pieces) file_.write(record);
  }
  void finish() override { file_.close(); }

 private:
  SampleFileForm form_;
  std::string features_, labels_;
  TfrecordWriter file_;
};

}  // namespace

std::unique_ptr<SampleWriter> make_sample_tfrecord(const std::string& path, SampleFileForm form,
                                                   const SampleFileOptions& options) {
  return std::make_unique<SampleTfrecord>(path, std::move(form), options);
}

}  // namespace lockstep
