// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Files of weights of other programs, as `lockstep import` reads them: up to the tensors with their new
// names.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "exchange/keras_layout.h"
#include "exchange/onnx_initializers.h"
#include "exchange/pytorch_layout.h"
#include "exchange/safetensors.h"
#include "exchange/state_dict.h"
#include "fuzz/parsers/parsers.h"

namespace lockstep::fuzz {

namespace {

using Bytes = std::span<const std::uint8_t>;

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// In memory, if it can be.
std::filesystem::path folder_of_files() {
  const std::filesystem::path memory = "/dev/shm";
  std::error_code failed;
  return std::filesystem::is_directory(memory, failed) ? memory : std::filesystem::temp_directory_path();
}

/// A file in a folder of its own, which links out of it must not leave.
class OwnFile {
 public:
  OwnFile(const std::string& name, std::string_view contents)
      : folder_(folder_of_files() / ("lockstep-fuzz-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / name).string();
    std::ofstream(path_, std::ios::binary) << contents;
  }
  ~OwnFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  OwnFile(const OwnFile&) = delete;
  OwnFile& operator=(const OwnFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::filesystem::path folder_;
  std::string path_;
};

void append_number(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i) & 0xFF);
}

/// A ZIP file of members that are not packed (APPNOTE 4.3); their checksums are 0.
std::string zip_of(const std::vector<std::pair<std::string, std::string_view>>& members) {
  std::string file, directory;
  const auto append_sizes = [](std::string& to, std::string_view name, std::string_view contents) {
    to += std::string(16, '\0');  // version, flags, method, time, date, checksum
    append_number(to, contents.size(), 4);
    append_number(to, contents.size(), 4);
    append_number(to, name.size(), 2);
    append_number(to, 0, 2);
  };
  for (const auto& [name, contents] : members) {
    const std::size_t begin = file.size();
    file += "PK\3\4";
    append_sizes(file, name, contents);
    file.erase(begin + 4, 2);  // the directory's version of the writer
    file.append(name).append(contents);
    directory += "PK\1\2";
    append_sizes(directory, name, contents);
    directory += std::string(10, '\0');
    append_number(directory, begin, 4);
    directory += name;
  }
  const std::size_t begin = file.size();
  file += directory + "PK\5\6" + std::string(4, '\0');
  append_number(file, members.size(), 2);
  append_number(file, members.size(), 2);
  append_number(file, directory.size(), 4);
  append_number(file, begin, 4);
  append_number(file, 0, 2);
  return file;
}

void read_state(std::string_view contents) {
  const OwnFile file("x.pt", contents);
  from_pytorch(read_state_dict(file.path()).tensors);
}

}  // namespace

/// A library's crash in the child process is expected; an exit is a sanitizer's report about our code.
void keras_weights(Bytes bytes) {
  const OwnFile file("x.weights.h5", text_of(bytes));
  FollowedFiles followed(file.path(), false);
  try {
    from_keras(read_keras_weights(file.path(), followed).tensors);
  } catch (const Error& error) {
    if (error.what_happened().find("ends the process (exit code") == std::string::npos) throw;
    std::fprintf(stderr, "the trial of the file: %s\n", error.what());
    std::abort();
  }
}

void onnx_weights(Bytes bytes) { onnx_initializers_from(text_of(bytes), "input"); }

void safetensors(Bytes bytes) { from_pytorch(safetensors_from(text_of(bytes), "input").tensors); }

void state_dict(Bytes bytes) { read_state(text_of(bytes)); }

/// The pickle of a state dict, in an archive with storages 0 to 39.
void state_dict_pickle(Bytes bytes) {
  const std::string numbers(10'000, '\1');
  std::vector<std::pair<std::string, std::string_view>> members{{"a/data.pkl", text_of(bytes)}};
  for (int i = 0; i < 40; ++i) members.emplace_back("a/data/" + std::to_string(i), numbers);
  read_state(zip_of(members));
}

}  // namespace lockstep::fuzz
