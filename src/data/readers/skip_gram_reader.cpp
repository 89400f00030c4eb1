// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Pairs (center, context) of a continuous text: Mikolov, Sutskever, Chen, Corrado, Dean 2013, "Distributed
// Representations of Words and Phrases and their Compositionality" (arXiv:1310.4546), sections 2 and 2.3.
//
// Unknown words are removed first, then frequent ones at random: a word with the share f of the text is kept
// with probability sqrt(t / f). The remaining words form one row; windows extend across line ends.
#include <algorithm>
#include <cmath>

#include "core/philox.h"
#include "data/data_files.h"
#include "data/reader_dataset.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/text_options.h"

namespace lockstep {

namespace {

struct Options {
  std::int64_t window = 0;
  bool random_window = false;
  double subsample = 0;
  std::int64_t seed = 0;
};
constexpr std::array kOptions = with_running_text_options(std::array{
    option<&Options::window>("window", "5", between(1, 1000),
                             "maximum number of words on each side of the center"),
    option<&Options::random_window>(
        "random_window", "true", {},
        "each center uses 1 to window words on each side with equal probability, so near words are "
        "more frequent"),
    option<&Options::subsample>(
        "subsample", "1e-3", between(0, 1),
        "t: frequent words are kept with probability sqrt(t / their share of the text); 0: keep all"),
    option<&Options::seed>("seed", "1", between(0, 9223372036854775807), "seed of these random choices")});

/// Uniform in [0, 1), a function of the word's position in the text.
float uniform(std::uint64_t seed, std::uint32_t purpose, std::size_t place) {
  const auto at = static_cast<std::uint64_t>(place);
  return philox_uniform(philox_words(seed, purpose, static_cast<std::uint32_t>(at >> 32),
                                     static_cast<std::uint32_t>(at), 0)[0]);
}

/// The words that are kept.
std::vector<std::int32_t> subsampled(const std::vector<std::int32_t>& ids, const Vocabulary& vocabulary,
                                     double t, std::uint64_t seed) {
  std::vector<double> share(static_cast<std::size_t>(vocabulary.size()));
  std::vector<std::int32_t> known;
  for (std::int32_t id : ids)
    if (!vocabulary.is_special(id)) {
      known.push_back(id);
      share[static_cast<std::size_t>(id)] += 1;
    }
  if (t == 0) return known;
  for (double& count : share) count /= static_cast<double>(known.size());
  const std::uint32_t purpose = philox_purpose("skip_gram/subsample");
  std::vector<std::int32_t> left;
  for (std::size_t i = 0; i < known.size(); ++i)
    if (static_cast<double>(uniform(seed, purpose, i)) <
        std::sqrt(t / share[static_cast<std::size_t>(known[i])]))
      left.push_back(known[i]);
  return left;
}

std::vector<std::int32_t> pairs_of(const Options& options, const std::vector<std::int32_t>& ids,
                                   const Vocabulary& vocabulary) {
  const auto seed = static_cast<std::uint64_t>(options.seed);
  const std::vector<std::int32_t> words = subsampled(ids, vocabulary, options.subsample, seed);
  const auto count = static_cast<std::int64_t>(words.size());
  const std::uint32_t purpose = philox_purpose("skip_gram/window");
  std::vector<std::int32_t> pairs;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t reach = options.window;
    if (options.random_window)
      reach = 1 + static_cast<std::int64_t>(uniform(seed, purpose, static_cast<std::size_t>(i)) *
                                            static_cast<float>(options.window));
    for (std::int64_t j = std::max<std::int64_t>(0, i - reach); j <= std::min(count - 1, i + reach); ++j)
      if (j != i)
        pairs.insert(pairs.end(), {words[static_cast<std::size_t>(i)], words[static_cast<std::size_t>(j)]});
  }
  return pairs;
}

DatasetParts dataset_of(const std::vector<std::int32_t>& pairs, const std::string& path,
                        std::shared_ptr<const TextInfo> info, std::optional<RowRange> rows) {
  if (pairs.empty())
    throw Error(ErrorKind::data, "yields no pairs: fewer than two words are left", path,
                "Lower min_count or raise subsample, or give more text.");
  const auto used = checked_rows(rows, static_cast<std::int64_t>(pairs.size()) / 2, path);
  DatasetParts parts;
  parts.source = path;
  parts.record_word = "pair";
  parts.first_record = used.first;
  parts.size = used.last - used.first;
  parts.feature_shape = {2};
  parts.text = std::move(info);
  set_ids(parts, {pairs.begin() + 2 * used.first, pairs.begin() + 2 * used.last},
          parts.text->vocabulary.size());
  return parts;
}

DatasetParts read_set(const Params& params, const std::string& base_directory, const TextInfo* known) {
  const TokenRow row = read_running_text(params, base_directory, known);
  return dataset_of(pairs_of(params.as<Options>(), row.ids, row.info->vocabulary), row.path, row.info,
                    rows_option(params));
}

DatasetParts make(const Params& params, const std::string& base_directory) {
  return read_set(params, base_directory, nullptr);
}

DatasetParts make_as_trained(const Params& params, const ReaderDataset& trained,
                             const std::string& base_directory) {
  return read_set(params, base_directory, trained.text());
}

DatasetParts make_input(const Params& params, const InputRequest& request) {
  LOCKSTEP_CHECK(request.text != nullptr);
  const std::string& path = only_file(request, "skip_gram");
  check_feature_shape(Shape{2}, request.feature_shape, path);
  return dataset_of(
      pairs_of(params.as<Options>(), read_tokens(path, *request.text), request.text->vocabulary), path,
      std::make_shared<TextInfo>(*request.text), std::nullopt);
}

}  // namespace

extern const ReaderEntry kSkipGramReader = {
    "skip_gram",    "pairs of a word and a nearby word of a continuous text; no labels",
    kOptions,       make,
    make_input,     nullptr,
    false,          file_of_path,
    nullptr,        nullptr,
    make_as_trained};

}  // namespace lockstep
