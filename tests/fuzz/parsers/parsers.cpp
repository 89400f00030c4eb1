// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "fuzz/parsers/parsers.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "config/yaml_node.h"
#include "core/error.h"
#include "data/byte_pair_file.h"
#include "data/npy_header.h"
#include "data/readers/zip_directory.h"
#include "data/tar_index.h"
#include "io/byte_source.h"
#include "io/example.h"
#include "io/json_fields.h"
#include "io/tfrecord_file.h"

namespace lockstep::fuzz {

namespace {

using Bytes = std::span<const std::uint8_t>;

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

class MemoryBytes final : public ByteSource {
 public:
  explicit MemoryBytes(Bytes bytes) : bytes_(bytes) {}
  std::size_t read_some(std::int64_t offset, void* to, std::size_t count) override {
    if (offset < 0) std::abort();
    const auto at = static_cast<std::size_t>(offset);
    if (at >= bytes_.size()) return 0;
    count = std::min(count, bytes_.size() - at);
    std::memcpy(to, bytes_.data() + at, count);
    return count;
  }
  std::int64_t max_bytes() const override { return static_cast<std::int64_t>(bytes_.size()); }
  const std::string& where() const override { return where_; }

 private:
  const Bytes bytes_;
  const std::string where_ = "input";
};

void npy(Bytes bytes) {
  MemoryBytes source(bytes);
  read_npy_header(source);
}

void zip(Bytes bytes) {
  const ZipDirectory zip(std::make_shared<MemoryBytes>(bytes));
  for (const std::string_view name : zip.names()) {
    const auto member = zip.open(name);
    char values[256];
    for (std::int64_t at = 0; at < 65536; at += static_cast<std::int64_t>(sizeof values))
      if (member->read_some(at, values, sizeof values) < sizeof values) break;
  }
}

void tar(Bytes bytes) {
  MemoryBytes source(bytes);
  read_tar(source, [&](const TarMember& member) {
    char last = 0;
    if (member.size > 0) source.read(member.offset + member.size - 1, &last, 1);
    tar_name_before(source, member.offset);
  });
}

void tfrecord(Bytes bytes) {
  MemoryBytes source(bytes);
  const std::vector<std::int64_t> begins = find_tfrecords(source);
  for (std::size_t i = 0; i + 1 < begins.size(); ++i)
    tfrecord_data(text_of(bytes).substr(static_cast<std::size_t>(begins[i]),
                                        static_cast<std::size_t>(begins[i + 1] - begins[i])));
}

/// Without the frame, whose checksums no mutation gets right.
void example(Bytes bytes) {
  for (const std::string& name : feature_names(text_of(bytes))) {
    const auto feature = find_feature(text_of(bytes), name);
    const auto count = static_cast<std::size_t>(feature->count());
    if (feature->kind == ExampleFeature::Kind::bytes) feature->bytes();
    if (feature->kind == ExampleFeature::Kind::floats) {
      std::vector<float> values(count);
      feature->read(values);
    }
    if (feature->kind == ExampleFeature::Kind::integers) {
      std::vector<std::int64_t> values(count);
      feature->read(values);
    }
  }
}

void json_lines(Bytes bytes) {
  std::vector<JsonField> fields(2);
  fields[0].name = "x";
  fields[1].name = "y";
  read_json_fields(text_of(bytes), fields);
}

/// What was read encodes a text, and is the same after it is written.
void tokenizer(Bytes bytes) {
  const BytePairs pairs = byte_pairs_from(text_of(bytes), "input");
  std::int64_t sum = 0;
  pairs.encode("the sound's <|endoftext|> of 42\n\n \xC3\xA9 aaaaaaaabbbbbbbb",
               [&](std::int32_t id) { sum += id; });
  if (sum < 0) std::abort();
  const std::string written = tokenizer_json(pairs.table());
  if (tokenizer_json(byte_pairs_from(written, "written").table()) != written) std::abort();
}

/// What was read is written again, too.
void yaml(Bytes bytes) { to_yaml(parse_yaml(text_of(bytes), "input")); }

constexpr Parser kParsers[] = {{"csv", csv_file},
                               {"example", example},
                               {"idx", idx_file},
                               {"json", json_lines},
                               {"jsonl", jsonl_file},
                               {"keras", keras_weights},
                               {"npy", npy},
                               {"onnx", onnx_weights},
                               {"pickle", state_dict_pickle},
                               {"safetensors", safetensors},
                               {"state_dict", state_dict},
                               {"tar", tar},
                               {"tfrecord", tfrecord},
                               {"tokenizer", tokenizer},
                               {"yaml", yaml},
                               {"zip", zip}};

}  // namespace

std::span<const Parser> parsers() { return kParsers; }

const Parser* find_parser(std::string_view name) {
  const auto found = std::ranges::find(kParsers, name, &Parser::name);
  return found == std::end(kParsers) ? nullptr : &*found;
}

void run(const Parser& parser, std::span<const std::uint8_t> bytes) {
  try {
    parser.run(bytes);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::data || error.kind() == ErrorKind::config) return;
    std::fprintf(stderr, "%s: an error of another kind: %s\n", std::string(parser.name).c_str(),
                 error.what());
    std::abort();
  }
}

}  // namespace lockstep::fuzz
