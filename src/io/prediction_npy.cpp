// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Predictions as NumPy's .npy: one float32 array {samples, output...}. The choice of a file of predictions by
// its ending is here, too.
#include <fmt/format.h>

#include "io/npy_format.h"
#include "io/prediction_file.h"

namespace lockstep {

namespace {

constexpr std::string_view kEndings[] = {".csv", ".h5", ".hdf5", ".npy"};

std::string header(const PredictedHead& head, std::int64_t samples) {
  std::vector<std::int64_t> extents{samples};
  extents.insert(extents.end(), head.shape.extents().begin(), head.shape.extents().end());
  return npy_header(DType::f32, extents);
}

class PredictionNpy final : public PredictionWriter {
 public:
  PredictionNpy(OutputFile& output, const PredictionInfo& info) : output_(output) {
    if (info.heads.size() != 1)
      throw Error(ErrorKind::config,
                  fmt::format("a .npy file holds one array, but the model has {} heads", info.heads.size()),
                  output.path(), "Choose an --output that ends with .h5 or .csv.");
    if (info.sample_name)
      throw Error(ErrorKind::config, "a .npy file holds numbers, but names of samples are asked for",
                  output.path(), "Choose an --output that ends with .h5 or .csv.");
    output_.append(header(info.heads.front(), info.samples));
  }
  void add(std::int64_t, std::span<const PredictedRows> heads) override {
    output_.append(heads.front().outputs.data(), heads.front().outputs.size_bytes());
  }

 private:
  OutputFile& output_;
};

}  // namespace

std::unique_ptr<PredictionWriter> make_prediction_npy(OutputFile& output, PredictionInfo info) {
  return std::make_unique<PredictionNpy>(output, info);
}

std::span<const std::string_view> prediction_endings() { return kEndings; }

bool holds_labels(std::string_view ending) { return ending == ".h5" || ending == ".hdf5"; }

std::unique_ptr<PredictionWriter> make_prediction_writer(std::string_view ending, OutputFile& output,
                                                         PredictionInfo info) {
  if (ending == ".csv") return make_prediction_csv(output, std::move(info));
  if (ending == ".npy") return make_prediction_npy(output, std::move(info));
  return make_prediction_hdf5(output, std::move(info));
}

}  // namespace lockstep
