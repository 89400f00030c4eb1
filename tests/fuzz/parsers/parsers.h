// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The entry points of Lockstep's own parsers for fuzzing: each takes any bytes, and must return or throw an
// Error about the data. Anything else ends the process. libfuzzer.cpp and replay.cpp call them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep::fuzz {

struct Parser {
  std::string_view name;  ///< also of its folder of inputs: tests/fuzz/corpus/NAME
  void (*run)(std::span<const std::uint8_t> bytes);
};

std::span<const Parser> parsers();
/// Null if there is none of this name.
const Parser* find_parser(std::string_view name);
/// Runs the parser; aborts unless it returns or throws an Error of the user's kinds.
void run(const Parser& parser, std::span<const std::uint8_t> bytes);

// In files.cpp.
void csv_file(std::span<const std::uint8_t> bytes);
void idx_file(std::span<const std::uint8_t> bytes);
void jsonl_file(std::span<const std::uint8_t> bytes);
// In weights.cpp.
void keras_weights(std::span<const std::uint8_t> bytes);
void onnx_weights(std::span<const std::uint8_t> bytes);
void safetensors(std::span<const std::uint8_t> bytes);
void state_dict(std::span<const std::uint8_t> bytes);
void state_dict_pickle(std::span<const std::uint8_t> bytes);

}  // namespace lockstep::fuzz
