// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep neighbours`: the words whose rows of a variable have the largest cosine with those of given
// words.
#include "driver/commands/neighbours.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "io/print_result.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "config/params.h"
#include "data/text_info.h"
#include "data/vocabulary.h"
#include "io/checkpoint.h"
#include "io/json.h"
#include "session/checkpoint_choice.h"
#include "session/kept_data.h"
#include "session/run_vocabulary.h"

namespace lockstep {

namespace {

constexpr std::string_view kVariables = "variables/";
constexpr std::int64_t kMostWords = 2'147'483'647;

struct Neighbour {
  std::int64_t id;
  double cosine;
};

/// A variable with a row per word, its rows scaled to length 1 in double.
struct Vectors {
  std::int64_t width = 0;
  std::vector<double> rows;
  std::span<const double> row(std::int64_t id) const {
    return {rows.data() + id * width, static_cast<std::size_t>(width)};
  }
};

bool fits(const CheckpointEntry& entry, std::int64_t words) {
  return entry.path.starts_with(kVariables) && entry.dtype == DType::f32 && entry.shape.rank() == 2 &&
         entry.shape[0] == words;
}

const CheckpointEntry& find_variable(const CheckpointFile& file, const std::string& name,
                                     std::int64_t words) {
  std::vector<const CheckpointEntry*> good;
  std::vector<std::string_view> names;
  for (const CheckpointEntry& entry : file.entries()) {
    if (!entry.path.starts_with(kVariables)) continue;
    const std::string_view own = std::string_view(entry.path).substr(kVariables.size());
    if (own == name) {
      if (fits(entry, words)) return entry;
      throw Error(ErrorKind::usage,
                  fmt::format("the variable {} is {} of {}, but the vocabulary has {} words", name,
                              entry.shape.to_string(), name_of(entry.dtype), words),
                  file.path(), "It must have a row of float32 per word.");
    }
    if (!fits(entry, words)) continue;
    good.push_back(&entry);
    names.push_back(own);
  }
  std::string list;
  for (std::string_view one : names) list += fmt::format("{}{}", list.empty() ? "" : ", ", one);
  if (!name.empty())
    throw Error(ErrorKind::usage, fmt::format("there is no variable '{}'", name), file.path(),
                list.empty() ? "See: lockstep inspect" : fmt::format("With a row per word: {}.", list));
  if (good.size() == 1) return *good.front();
  if (good.empty())
    throw Error(ErrorKind::usage, fmt::format("no variable has a row for each of {} words", words),
                file.path(), "Is --vocabulary that of this run? Variables: lockstep inspect.");
  throw Error(ErrorKind::usage, fmt::format("{} variables have a row per word", good.size()), file.path(),
              fmt::format("Choose one with --variable: {}.", list));
}

Vectors read_vectors(const CheckpointFile& file, const CheckpointEntry& entry) {
  std::vector<float> values(static_cast<std::size_t>(entry.shape.num_elements()));
  file.read_into(entry.path, Tensor(values.data(), entry.dtype, entry.shape));
  Vectors vectors{entry.shape[1], {values.begin(), values.end()}};
  for (std::int64_t row = 0; row < entry.shape[0]; ++row) {
    double* const first = vectors.rows.data() + row * vectors.width;
    double squares = 0;
    for (std::int64_t i = 0; i < vectors.width; ++i) squares += first[i] * first[i];
    if (squares > 0)
      std::transform(first, first + vectors.width, first, [&](double x) { return x / std::sqrt(squares); });
  }
  return vectors;
}

std::int64_t id_of(const Vocabulary& vocabulary, const std::string& word) {
  const std::int32_t id = vocabulary.id(word);
  if (!vocabulary.is_special(id)) return id;
  std::vector<std::string_view> known;
  for (const Vocabulary::Word& one : vocabulary.words()) known.push_back(one.text);
  const std::string near = nearest(word, known);
  throw Error(ErrorKind::usage, fmt::format("'{}' is not in the vocabulary", word), {},
              near.empty() ? "Words are in vocabulary.txt or tokenizer.json of the run directory."
                           : fmt::format("Did you mean '{}'?", near));
}

/// The largest cosines first; of equal ones the more frequent word.
std::vector<Neighbour> neighbours_of(const Vectors& vectors, const Vocabulary& vocabulary, std::int64_t id,
                                     std::int64_t count) {
  std::vector<Neighbour> all;
  const std::span<const double> own = vectors.row(id);
  for (std::int64_t other = vocabulary.unknown_id() + 1; other < vocabulary.size(); ++other) {
    if (other == id) continue;
    double cosine = 0;
    const std::span<const double> row = vectors.row(other);
    for (std::size_t i = 0; i < row.size(); ++i) cosine += own[i] * row[i];
    all.push_back({other, cosine});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Neighbour& a, const Neighbour& b) { return a.cosine > b.cosine; });
  all.resize(std::min(all.size(), static_cast<std::size_t>(count)));
  return all;
}

/// That of the option, of the run directory, or of the checkpoint.
Vocabulary vocabulary_of(const NeighboursArguments& arguments, const CheckpointFile& file) {
  std::error_code code;
  if (!arguments.vocabulary.empty()) {
    if (std::filesystem::exists(arguments.vocabulary, code)) return read_vocabulary(arguments.vocabulary);
  } else {
    if (std::optional<Vocabulary> words = run_vocabulary(arguments.run_dir)) return *std::move(words);
    if (const auto description = kept_description(file.header().kept.get(), file.path()))
      for (const SampleDescription::Part& part : description->parts)
        if (part.text != nullptr) return part.text->vocabulary;
  }
  throw Error(ErrorKind::usage, "there is no vocabulary",
              arguments.vocabulary.empty() ? arguments.run_dir : arguments.vocabulary,
              "Give a run directory whose data is text, or a file with --vocabulary.");
}

void declare(CommandOptions& options, NeighboursArguments& arguments) {
  add_target(options, "RUN_DIR", arguments.run_dir, "Run directory");
  options.add("--words", arguments.words, "Words of the vocabulary, separated by commas")
      .required()
      .delimiter(',')
      .type_name("A,B,...")
      .one_value_each();
  options
      .add("--variable", arguments.variable,
           "The variable with a row per word; default: the only one that has as many rows as the "
           "vocabulary has words")
      .type_name("NAME")
      .check(not_empty("a variable"));
  options.add("--count", arguments.count, "Neighbours of each word; default: 10")
      .type_name("N")
      .check(whole_number(1, kMostWords));
  options
      .add("--vocabulary", arguments.vocabulary,
           "A vocabulary.txt or tokenizer.json; default: that of the run directory, or of the checkpoint")
      .type_name("FILE")
      .check(not_empty("a path"));
  add_json(options, arguments.json);
  add_checkpoint(options, arguments.checkpoint);
}

int run(const NeighboursArguments& arguments) {
  const CheckpointFile file = arguments.checkpoint.empty() || is_checkpoint_word(arguments.checkpoint)
                                  ? open_chosen_checkpoint(arguments.run_dir, arguments.checkpoint)
                                  : CheckpointFile(arguments.checkpoint);
  const Vocabulary vocabulary = vocabulary_of(arguments, file);
  const CheckpointEntry& entry = find_variable(file, arguments.variable, vocabulary.size());
  const Vectors vectors = read_vectors(file, entry);

  auto json = Json::object();
  std::string table;
  for (const std::string& word : arguments.words) {
    const std::int64_t id = id_of(vocabulary, word);
    table += fmt::format("{}{} ({} times)\n", table.empty() ? "" : "\n", escaped_word(word),
                         vocabulary.word(id).count);
    auto list = Json::array();
    for (const Neighbour& near : neighbours_of(vectors, vocabulary, id, arguments.count)) {
      const Vocabulary::Word& other = vocabulary.word(near.id);
      table += fmt::format("  {:>7.4f}  {}\n", near.cosine, escaped_word(other.text));
      list.push_back({{"word", other.text}, {"cosine", near.cosine}, {"count", other.count}});
    }
    json[word] = list;
  }
  if (arguments.json)
    table = Json{{"checkpoint", file.path()},
                 {"variable", entry.path.substr(kVariables.size())},
                 {"neighbours", json}}
                .dump(2) +
            "\n";
  arguments.json ? print_as_is(table) : print_lines(table);
  return 0;
}

}  // namespace

extern const Command kNeighboursCommand = {
    "neighbours", "Print the words whose vectors are nearest to those of given words",
    "lockstep neighbours runs/word2vec --words king,love --count 5",
    call_with<NeighboursArguments, declare, run>};

}  // namespace lockstep
