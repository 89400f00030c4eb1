// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared by the tests of the readers: a temporary folder, files in it, options as text, errors, and the
// contents of a data set.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "config/param_reader.h"
#include "core/error.h"
#include "data/reader_dataset.h"
#include "data/reader_table.h"
#include "support/test_folders.h"

namespace lockstep::testing {

/// A test with its own empty folder.
class FolderTest : public ::testing::Test {
 protected:
  FolderTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep-io-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder_ = pattern;
  }
  ~FolderTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream file(path(name), std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    ASSERT_TRUE(file.good()) << name;
  }

  /// Writes `bytes` compressed, independently of the file name.
  void write_gzip(const std::string& name, const std::string& bytes) const {
    gzFile file = gzopen(path(name).c_str(), "wb6");
    ASSERT_NE(file, nullptr) << name;
    ASSERT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
              static_cast<int>(bytes.size()));
    ASSERT_EQ(gzclose(file), Z_OK);
  }

  std::string read(const std::string& name) const { return bytes_of(path(name)); }
  static std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string folder_;
};

/// A small file that the format's own tool wrote (tests/vectors/make_record_vectors.py).
inline std::string record_vector(const std::string& name) { return test_vectors("records/" + name); }

/// 0, 1, 2, ...
inline std::vector<float> counted(int count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

/// Options as written in YAML, flat lists included: {"rows", "[0, 10]"}.
using Options = std::vector<std::pair<std::string, std::string>>;

inline Params params_for(std::string_view format, const Options& options) {
  Node node;
  node.kind = Node::Kind::map;
  node.where = "config.yaml:1:1";
  for (const auto& [name, text] : options) {
    node.entries.emplace_back(name, parse_fallback(text));
    node.entry_where.push_back(node.where);
  }
  return Params(node, find_reader(format).table, std::string(format));
}

/// The Error that `action` throws. If it throws none, the test fails and the result is an empty error.
template <typename Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorKind::bug, "");
}

/// Expects an Error(data) with this place, a message that contains `what`, and some advice.
template <typename Action>
void expect_data_error(Action action, const std::string& where, const std::string& what) {
  const Error error = error_of(action);
  EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
  EXPECT_EQ(error.where(), where) << error.what();
  EXPECT_THAT(error.what_happened(), ::testing::HasSubstr(what));
  EXPECT_NE(error.advice(), "") << error.what();
}

/// Labels are class numbers below `count`, in the first columns.
inline LabelDemand classes(std::int64_t count, std::int64_t columns = 1) {
  return {.last = columns,
          .least = 0,
          .most = static_cast<double>(count) - 1,
          .whole = true,
          .ignored = {},
          .wanted = fmt::format("one of {} classes", count),
          .advice = "Check the label columns."};
}

inline std::vector<std::int64_t> all_samples(const Dataset& dataset) {
  std::vector<std::int64_t> samples(static_cast<std::size_t>(dataset.size()));
  std::iota(samples.begin(), samples.end(), 0);
  return samples;
}

inline std::vector<float> features_of(const Dataset& dataset, const std::vector<std::int64_t>& samples) {
  std::vector<float> values(samples.size() *
                            static_cast<std::size_t>(dataset.feature_shape().num_elements()));
  std::vector<float> scratch(static_cast<std::size_t>(dataset.scratch_values()));
  dataset.gather_features(samples, {}, values.data(), scratch.data());
  return values;
}
inline std::vector<float> features_of(const Dataset& dataset) {
  return features_of(dataset, all_samples(dataset));
}

template <typename T>
std::vector<T> labels_of(const Dataset& dataset) {
  std::vector<T> values(static_cast<std::size_t>(dataset.size() * dataset.num_label_columns()));
  dataset.gather_labels(all_samples(dataset), values.data());
  return values;
}

}  // namespace lockstep::testing
