// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Metrics are compared with those of another library: every case of tests/reference/metrics.json (made by
// metrics.py).
#include <fstream>
#include <nlohmann/json.hpp>

#include "metric_testing.h"
#include "support/test_folders.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

Samples samples_of(const Json& entry) {
  Samples samples;
  samples.outputs = entry["outputs"].get<std::vector<float>>();
  const auto width = entry["width"].get<std::int64_t>();
  samples.n = static_cast<std::int64_t>(samples.outputs.size()) / width;
  samples.input.output = Shape{width};
  samples.input.num_samples = samples.n;
  samples.predictions = samples.outputs;
  if (entry["kind"] == "classes") {
    samples.indices = entry["labels"].get<std::vector<std::int32_t>>();
    transform_outputs(MetricSpec::Transform::softmax, samples.n, samples.input.output, samples.outputs.data(),
                      samples.predictions.data());
    return samples;
  }
  samples.input.predictions = entry["kind"] == "labels" ? PredictionKind::labels : PredictionKind::values;
  samples.input.dense_labels = true;
  samples.input.label_columns = width;
  samples.rows = entry["labels"].get<std::vector<float>>();
  return samples;
}

TEST(ReferenceMetrics, MatchAnotherLibrary) {
  std::ifstream file(test_reference("metrics.json"));
  ASSERT_TRUE(file.good());
  const Json all = Json::parse(file);
  ASSERT_GE(all["cases"].size(), 40U);
  for (const Json& entry : all["cases"]) {
    const std::string yaml = entry["yaml"];
    SCOPED_TRACE(yaml);
    const Samples samples = samples_of(entry);
    const MetricReport report = report_of(yaml, samples, false);
    ASSERT_EQ(report.value.has_value(), !entry["value"].is_null());
    if (report.value) expect_near(*report.value, entry["value"], yaml, 1e-10);
    for (const auto& [name, expected] : entry["tables"].items()) {
      const std::vector<double> found = table_of(yaml, samples, name, false);
      ASSERT_EQ(found.size(), expected.size()) << name;
      for (std::size_t i = 0; i < found.size(); ++i) expect_near(found[i], expected[i], name, 1e-10);
    }
  }
}

}  // namespace
}  // namespace lockstep
