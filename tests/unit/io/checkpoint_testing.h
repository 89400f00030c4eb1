// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A temporary folder for a test, and small checkpoints with contents that differ everywhere.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "io/checkpoint.h"

namespace lockstep::testing {

/// An empty folder, removed at the end.
class CheckpointFolder {
 public:
  CheckpointFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~CheckpointFolder() {
    std::error_code code;
    std::filesystem::remove_all(path_, code);
  }
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::vector<std::string> names(const std::string& under = ".") const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_ + "/" + under))
      found.push_back(entry.path().filename().string());
    return found;
  }

 private:
  std::string path_;
};

/// Fast: does not flush to the disk.
inline void write_file(const std::string& path, const std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path);
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (std::fclose(file) != 0 || !written) throw std::runtime_error("cannot write " + path);
}

/// During its lifetime, writing beyond `bytes` into any file fails with EFBIG, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    if (::getrlimit(RLIMIT_FSIZE, &previous_) != 0) throw std::runtime_error("getrlimit failed");
    rlimit limited = previous_;
    limited.rlim_cur = bytes;
    if (::setrlimit(RLIMIT_FSIZE, &limited) != 0) throw std::runtime_error("setrlimit failed");
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &previous_);
    ::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit previous_{};
};

/// Tensors with their memory.
class TestTensors {
 public:
  /// Bytes differ per tensor, place and `salt`.
  void add(const std::string& path, DType type, const Shape& shape, unsigned salt = 0) {
    const std::size_t bytes = Tensor(nullptr, type, shape).size_bytes();
    std::vector<std::uint64_t>& block = blocks_.emplace_back(bytes / 8 + 1);
    auto* data = reinterpret_cast<unsigned char*>(block.data());
    for (std::size_t i = 0; i < bytes; ++i)
      data[i] = static_cast<unsigned char>((i + 1) * (blocks_.size() * 2 + 1) * 37 + salt * 101);
    tensors_.push_back({path, Tensor(data, type, shape)});
  }
  const std::vector<CheckpointTensor>& get() const { return tensors_; }

 private:
  std::vector<std::vector<std::uint64_t>> blocks_;
  std::vector<CheckpointTensor> tensors_;
};

inline CheckpointHeader test_header(std::int64_t step = 200) {
  CheckpointHeader header;
  header.global_step = step;
  header.epoch = 3;
  header.samples_consumed = 640;
  header.shards = 4;
  header.seed = 0xFEDCBA9876543210U;
  header.config = "seed: 1\nmodel: {name: \"caf\xc3\xa9\"}\n";
  header.lockstep_version = "0.1.0";
  return header;
}

inline TestTensors test_tensors(unsigned salt = 0) {
  TestTensors tensors;
  tensors.add("variables/conv1/kernel", DType::f32, {3, 1, 5, 7}, salt);
  tensors.add("variables/conv1/bias", DType::f32, {7}, salt);
  tensors.add("slots/momentum/conv1/kernel", DType::f32, {3, 1, 5, 7}, salt);
  tensors.add("moving_averages/conv1/bias", DType::f32, {7}, salt);
  tensors.add("state/loss_scale", DType::f64, {}, salt);
  return tensors;
}

}  // namespace lockstep::testing
