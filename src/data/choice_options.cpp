// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/choice_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "config/option.h"
#include "core/error.h"
#include "core/philox.h"
#include "core/range.h"
#include "data/class_lists.h"

namespace lockstep {

namespace {

// Seeds determine which samples are in a part: do not change it.
constexpr std::uint32_t kClassPartPurpose = philox_purpose("choice_options/class");

/// As it is written: what ChoiceOptions has in another form.
struct Written {
  std::optional<std::vector<double>> random_split;
  std::optional<double> holdout;
  std::optional<std::int64_t> folds, fold;
  std::optional<std::vector<std::int64_t>> length_buckets;
  Node class_shares;
};
SplitKey split_key_of_choice(const Params& params, const ParamSpec& option) {
  return params.has(option.name) ? static_cast<SplitKey>(choice_index(params, option) + 1) : SplitKey::none;
}
std::uint64_t seed_of(const Params& params, const ParamSpec& option) {
  return static_cast<std::uint64_t>(params.integer(option.name));
}

constexpr ParamSpec kTable[] = {
    option<&Written::random_split>(
        "random_split", "null", between(0, 1).note("first, last"),
        "Share of the samples to use, in a random order of all: with the same split_seed [0, 0.8], [0.8, "
        "0.9] and [0.9, 1] are three disjoint sets that together have every sample. null: all."),
    option<&Written::holdout>(
        "holdout", "null", above(0).below(1).or_null(),
        "Share of the samples that the evaluation set has; the training set has the others."),
    option<&Written::folds>(
        "folds", "null", between(2, 1000).or_null(),
        "Cross-validation: the samples are divided into so many random folds, which differ by one unit at "
        "most. The evaluation set has the one that `fold` names, the training set all others."),
    option<&Written::fold>("fold", "null", between(0, 999).or_null(), "Number of the fold, from 0."),
    option_as<seed_of, &ChoiceOptions::split_seed>(
        ParamType::integer, "split_seed", "0", between(0, 1e18),
        "Chooses the random order of random_split, holdout and folds."),
    option<&ChoiceOptions::split_unit>(
        "split_unit", "1", between(1, 1e12, "samples"),
        "So many consecutive samples stay together in random_split, holdout and folds: the pictures of one "
        "film, or a chunk of a file that is read while it is used."),
    option<&ChoiceOptions::split_by_class>(
        "split_by_class", "false", {},
        "Divide the samples of each class by themselves, so that every part has the same shares of classes."),
    option_as<split_key_of_choice, &ChoiceOptions::split_key>(
        ParamType::string, "split_key", "null", one_of("record|file|column").or_null(),
        "Divide by a hash of each sample's key, so that it stays in its part when samples are added: the "
        "name of its file and record, of its file, or its text in the reader's key_column. Parts have about "
        "their shares."),
    option_as<is_second_choice, &ChoiceOptions::balances>(
        ParamType::string, "balance", "none", one_of("none|classes"),
        "classes: an epoch of the training set has as many samples as without, in equal shares of all "
        "classes, or in those of class_shares."),
    option<&Written::class_shares>(
        "class_shares", "null", in_words("map of classes to shares, or null"),
        "With balance: classes, the share of each class, relative to others; of those not named 1."),
    option<&ChoiceOptions::skip>(
        "skip", "0", between(0, 1e15, "samples"),
        "Leave out so many samples at the beginning of the set: of the file, or of the random part."),
    option<&ChoiceOptions::take>("take", "null", between(1, 1e15, "samples").or_null(),
                                 "Use so many samples after those; null: all."),
    option<&ChoiceOptions::repeat>(
        "repeat", "1", between(1, 1e6),
        "An epoch of the training set is so many passes, each in an order of its own."),
    option<&Written::length_buckets>(
        "length_buckets", "null", between(0, 1e6, "steps").note("ascending"),
        "Batches of the training set have sequences of similar lengths: [10, 20] makes three buckets, of up "
        "to 10 steps, up to 20, and longer ones. null: any lengths."),
};

void read_part(ChoiceOptions& options, const Written& written, const Params& params) {
  using Part = ChoiceOptions::Part;
  const auto only = [&](std::string_view name, bool is_given, Part part) {
    if (!is_given) return;
    if (options.part != Part::all)
      throw params.error(name, "is a second way to divide the set",
                         "Give one of random_split, holdout and folds.");
    options.part = part;
  };
  only("random_split", written.random_split.has_value(), Part::shares);
  if (const auto& shares = written.random_split) {
    if (shares->size() != 2 || !((*shares)[0] < (*shares)[1]))
      throw params.error("random_split", "must be two numbers, 0 <= first < last <= 1",
                         "For nine tenths of the samples write [0, 0.9].");
    options.first_share = shares->front();
    options.last_share = shares->back();
  }
  only("holdout", written.holdout.has_value(), Part::holdout);
  options.holdout = written.holdout.value_or(0);
  only("folds", written.folds.has_value(), Part::fold);
  if (written.folds && !written.fold)
    throw params.error("folds", "is given without fold", "Say which fold is evaluated: fold: 0.");
  if (written.fold && !written.folds)
    throw params.error("fold", "is given without folds", "Say how many there are: folds: 5.");
  options.folds = written.folds.value_or(0);
  options.fold = written.fold.value_or(0);
  if (written.fold && options.fold >= options.folds)
    throw params.error("fold", fmt::format("{} is none of {} folds", options.fold, options.folds),
                       "Folds count from 0.");
  for (const std::string_view name : {"split_seed", "split_unit", "split_by_class", "split_key"})
    if (options.part == Part::all && params.given(name))
      throw params.error(name, "is given, but nothing is divided",
                         "Add random_split, holdout or folds, or leave it out.");
}

void read_shares(ChoiceOptions& options, const Node& map, const Params& params) {
  if (is_null(map)) return;
  if (!options.balances)
    throw params.error("class_shares", "is given without balance", "Write balance: classes beside it.");
  const auto mistake = [&] {
    return params.error("class_shares", "must be a map of class numbers to shares from 0 to 1e9",
                        "For three samples of class 1 to one of any other write {1: 3}.");
  };
  if (map.kind != Node::Kind::map) throw mistake();
  for (const auto& [name, share] : map.entries) {
    std::int32_t of_class = 0;
    const char* const end = name.data() + name.size();
    const auto [rest, failed] = std::from_chars(name.data(), end, of_class);
    char* share_end = nullptr;
    const double value = share.kind == Node::Kind::scalar ? std::strtod(share.text.c_str(), &share_end) : -1;
    if (failed != std::errc() || rest != end || share_end == nullptr || share.text.empty() ||
        *share_end != '\0' || !(value >= 0 && value <= 1e9))
      throw mistake();
    options.class_shares[of_class] = value;
  }
}

void check_buckets(const ChoiceOptions& options, const Params& params, bool evaluation) {
  const std::vector<std::int64_t>& bounds = options.length_buckets;
  if (bounds.empty() || std::ranges::adjacent_find(bounds, std::greater_equal()) != bounds.end())
    throw params.error("length_buckets", "must be lengths in ascending order",
                       "For sequences of up to 10, 11 to 20 and more steps write [10, 20].");
  if (evaluation)
    throw params.error("length_buckets", "is not for an evaluation, whose result no order changes",
                       "Write it under data.train.");
  if (options.balances)
    throw params.error("length_buckets", "is given beside balance: each decides the order of an epoch",
                       "Leave out one of them.");
}

/// Places of the units that a part has.
RandomPart part_of(const ChoiceOptions& options, bool evaluation, std::int64_t units) {
  using Part = ChoiceOptions::Part;
  const auto rounded = [&](double share) {
    return std::clamp<std::int64_t>(std::llround(share * static_cast<double>(units)), 0, units);
  };
  RandomPart part{.unit = options.split_unit, .seed = options.split_seed};
  if (options.part == Part::shares) {
    part.places = {rounded(options.first_share), rounded(options.last_share)};
  } else if (options.part == Part::holdout) {
    const std::int64_t cut = units - rounded(options.holdout);
    part.places = evaluation ? Range{cut, units} : Range{0, cut};
  } else {
    const auto cut = [&](std::int64_t fold) {  // fold * units / folds, which may be too large a product
      return units / options.folds * fold + units % options.folds * fold / options.folds;
    };
    part.places = {cut(options.fold), cut(options.fold + 1)};
    part.all_but = !evaluation;
  }
  return part;
}

/// The part of each class, ascending.
std::vector<std::uint32_t> list_by_class(const ChoiceOptions& options, bool evaluation,
                                         std::span<const std::int32_t> labels) {
  const ClassLists classes(labels, nullptr);
  std::vector<std::uint32_t> list;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const std::span<const std::uint32_t> samples = classes.samples(i);
    const RandomPart part = part_of(options, evaluation, std::ssize(samples));
    const KeyedPermutation order(std::ssize(samples));
    const KeyedPermutation::Key key{options.split_seed, kClassPartPurpose,
                                    static_cast<std::uint32_t>(classes.labels()[i])};
    for (std::int64_t place = 0; place < std::ssize(samples); ++place)
      if (has_place(part, place)) list.push_back(samples[static_cast<std::size_t>(order.at(key, place))]);
  }
  std::ranges::sort(list);
  return list;
}

}  // namespace

std::span<const ParamSpec> choice_table() { return kTable; }

ChoiceOptions choice_options(const Params& params, bool evaluation) {
  const auto written = params.as<Written>();
  auto options = params.as<ChoiceOptions>();
  read_part(options, written, params);
  if (options.split_by_class && options.split_unit > 1)
    throw params.error("split_by_class", "does not keep samples together, but split_unit is given",
                       "Give one of the two.");
  if (options.split_key != SplitKey::none && (options.split_by_class || options.split_unit > 1))
    throw params.error("split_key", "is given beside split_unit or split_by_class",
                       "A sample's key alone decides where it belongs: give one of them.");
  read_shares(options, written.class_shares, params);
  if (evaluation && options.balances)
    throw params.error("balance", "is not for an evaluation, which uses every sample once",
                       "Write it under data.train.");
  if (written.length_buckets) {
    options.length_buckets = *written.length_buckets;
    check_buckets(options, params, evaluation);
  }
  options.written = params;
  if (evaluation && options.repeat != 1)
    throw params.error("repeat", "is not for an evaluation, which uses every sample once",
                       "Write it under data.train.");
  return options;
}

std::shared_ptr<const SampleChoice> choose_samples(const ChoiceOptions& options, bool evaluation,
                                                   std::int64_t num_samples,
                                                   std::span<const std::int32_t> labels,
                                                   std::span<const double> places) {
  const bool divides = options.part != ChoiceOptions::Part::all;
  if (!divides && options.skip == 0 && !options.take) return nullptr;
  SampleChoice::Spec spec{.num_samples = num_samples, .skip = options.skip, .take = options.take};
  if (divides && options.split_key != SplitKey::none)
    spec.list = std::make_shared<const std::vector<std::uint32_t>>(list_by_key(options, evaluation, places));
  else if (options.split_by_class)
    spec.list =
        std::make_shared<const std::vector<std::uint32_t>>(list_by_class(options, evaluation, labels));
  else if (divides)
    spec.part = part_of(options, evaluation, units_of(num_samples, options.split_unit));
  try {
    return std::make_shared<const SampleChoice>(spec);
  } catch (const Error& error) {
    using Part = ChoiceOptions::Part;
    const char* const name = options.take                    ? "take"
                             : options.skip > 0              ? "skip"
                             : options.part == Part::shares  ? "random_split"
                             : options.part == Part::holdout ? "holdout"
                                                             : "folds";
    throw options.written.error(name, error.what_happened(), "Choose from as many samples as there are.");
  }
}

std::shared_ptr<const ClassQuotas> balance_classes(const ChoiceOptions& options, const SampleChoice* choice,
                                                   std::span<const std::int32_t> labels) {
  ClassLists lists(labels, choice);
  std::vector<double> shares(lists.size(), 1.0);
  for (const auto& [of_class, share] : options.class_shares) {
    const auto found = std::ranges::lower_bound(lists.labels(), of_class);
    if (found == lists.labels().end() || *found != of_class)
      throw options.written.error("class_shares", fmt::format("no chosen sample has class {}", of_class),
                                  "lockstep check prints the classes.");
    shares[static_cast<std::size_t>(found - lists.labels().begin())] = share;
  }
  if (std::ranges::all_of(shares, [](double share) { return share == 0; }))
    throw options.written.error("class_shares", "no class has a share above 0", "Give one a share.");
  const std::int64_t places = lists.num_samples() * options.repeat;
  return std::make_shared<const ClassQuotas>(std::move(lists), shares, places);
}

}  // namespace lockstep
