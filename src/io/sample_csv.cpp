// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples as CSV: the header f0,f1,...,label, then a line per sample. Numbers have as many digits as float32
// needs to be read back with the same bits.
#include <fmt/format.h>

#include <iterator>
#include "core/plain_nan.h"

#include "core/error.h"
#include "io/output_file.h"
#include "io/sample_file.h"

namespace lockstep {

namespace {

class SampleCsv final : public SampleWriter {
 public:
  SampleCsv(const std::string& path, SampleFileForm form, const SampleFileOptions& options)
      : form_(std::move(form)), delimiter_(options.delimiter), file_(path, {}) {
    if (form_.label_columns > 1)
      throw Error(ErrorKind::config,
                  fmt::format("a line of CSV has one label, but a sample has {}", form_.label_columns), path,
                  "Choose another format: --to hdf5.");
    LOCKSTEP_CHECK(form_.type == DType::f32);
    std::string names;
    for (std::int64_t i = 0; i < form_.shape.num_elements(); ++i)
      names += fmt::format("f{}{}", i, delimiter_);
    if (form_.label_columns == 1) names += "label ";
    names.back() = '\n';
    file_.append(names);
  }

  EncodedBlock encode(const SampleBlock& block) const override {
    std::string text;
    auto out = std::back_inserter(text);
    const std::int64_t values = form_.shape.num_elements();
    const float* value = static_cast<const float*>(block.features);
    for (std::int64_t sample = 0; sample < block.count; ++sample) {
      for (std::int64_t i = 0; i < values; ++i) fmt::format_to(out, "{}{}", plain_nan(*value++), delimiter_);
      if (block.label_indices != nullptr) fmt::format_to(out, "{} ", block.label_indices[sample]);
      if (block.label_rows != nullptr) fmt::format_to(out, "{} ", plain_nan(block.label_rows[sample]));
      text.back() = '\n';  // in place of the last delimiter
    }
    return {.count = block.count, .pieces = {std::move(text)}, .skipped_filters = {}};
  }

  void write(const EncodedBlock& block) override { file_.append(block.pieces[0]); }
  void finish() override { file_.publish(); }

 private:
  SampleFileForm form_;
  char delimiter_;
  OutputFile file_;
};

}  // namespace

std::unique_ptr<SampleWriter> make_sample_csv(const std::string& path, SampleFileForm form,
                                              const SampleFileOptions& options) {
  return std::make_unique<SampleCsv>(path, std::move(form), options);
}

}  // namespace lockstep
