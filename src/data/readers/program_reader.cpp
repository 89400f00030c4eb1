// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples that the program itself gives (program_input.h). A run with them can be trained and evaluated by
// that program only.
#include <algorithm>
#include <array>
#include <map>

#include "core/error.h"
#include "data/program_input.h"
#include "data/reader_options.h"
#include "data/reader_table.h"

namespace lockstep {

namespace {

struct Options {
  std::string input;
};
constexpr std::array kAll = with_store_options(std::array{option<&Options::input>(
    "input", kRequired, {}, "name of the samples, which a C++ program gives (docs/estimator.md)")});
// skip and take choose among them.
constexpr auto kOptions = [] {
  std::array<ParamSpec, kAll.size() - 1> table{};
  std::copy_if(kAll.begin(), kAll.end(), table.begin(),
               [](const ParamSpec& spec) { return spec.name != "rows"; });
  return table;
}();

std::map<std::string, ProgramInput, std::less<>>& inputs() {
  static std::map<std::string, ProgramInput, std::less<>> known;
  return known;
}

DatasetParts make(const Params& params, const std::string& /*base_directory*/) {
  const std::string name = params.as<Options>().input;
  const auto found = inputs().find(name);
  if (found == inputs().end())
    throw params.error("input", fmt::format("this program gives no samples called '{}'", name),
                       "They come from the C++ program that made the run: use that program.");
  DatasetParts parts = found->second();
  if (parts.source.empty()) parts.source = fmt::format("input {}", name);
  if (parts.record_word.empty()) parts.record_word = "sample";
  parts.transform = transform_options(params);
  return parts;
}

DatasetParts make_input(const Params& params, const InputRequest& /*request*/) {
  throw params.error("input", "the samples of this run are given by a C++ program, not read from files",
                     "Predict with that program (Estimator::predict).");
}

}  // namespace

void LentStore::read(std::int64_t first, std::int64_t count, const SampleRoom& to) {
  const std::int64_t bytes = form_.sample_bytes(), columns = form_.num_label_columns;
  std::copy_n(static_cast<const char*>(values_.features) + first * bytes, count * bytes,
              static_cast<char*>(to.features));
  if (to.label_indices != nullptr)
    std::copy_n(values_.label_indices + first * columns, count * columns, to.label_indices);
  if (to.label_rows != nullptr)
    std::copy_n(values_.label_rows + first * columns, count * columns, to.label_rows);
}

std::shared_ptr<const LentStore> lent_store(const DatasetParts& parts) {
  return std::dynamic_pointer_cast<const LentStore>(parts.store);
}

void set_program_input(const std::string& name, ProgramInput input) { inputs()[name] = std::move(input); }

void forget_program_input(const std::string& name) { inputs().erase(name); }

extern const ReaderEntry kProgramReader = {"program", "samples that a C++ program gives", kOptions, make,
                                           make_input};

}  // namespace lockstep
