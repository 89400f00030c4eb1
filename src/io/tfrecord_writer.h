// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes a TFRecord file, which TensorFlow and the reader tfrecord read:
//
//     TfrecordWriter writer("train.tfrecord.gz", TfrecordCompression::gzip);
//     for (...) writer.write(ExampleBuilder().add_bytes("image", pixels).add_integer("label",
//     3).serialized()); writer.close();
//
// The file appears with close(), complete; without it an older file keeps its contents. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

/// automatic: readers look at the first bytes; a writer takes gzip for names that end with .gz, else none.
enum class TfrecordCompression { automatic, none, gzip, zlib };

class TfrecordWriter {
 public:
  /// `level`: zlib's, 1 (fast) to 9 (small). Throws Error(config) for a path that cannot be written.
  explicit TfrecordWriter(const std::string& path,
                          TfrecordCompression compression = TfrecordCompression::automatic, int level = 6);
  ~TfrecordWriter();
  TfrecordWriter(const TfrecordWriter&) = delete;
  TfrecordWriter& operator=(const TfrecordWriter&) = delete;

  /// Throws Error(output).
  void write(std::string_view record);
  std::int64_t num_records() const;
  /// Throws Error(output). No record can be written after it.
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
