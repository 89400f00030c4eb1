// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/choice_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr ParamSpec kTable[] = {
    {"random_split", reals, "null", "[0, 1]; first, last",
     "Share of the samples to use, in a random order of all: with the same split_seed [0, 0.8], [0.8, 0.9] "
     "and [0.9, 1] are three disjoint sets that together have every sample. null: all."},
    {"holdout", real, "null", "(0, 1) or null",
     "Share of the samples that the evaluation set has; the training set has the others."},
    {"folds", integer, "null", "[2, 1000] or null",
     "Cross-validation: the samples are divided into so many random folds, which differ by one unit at most. "
     "The evaluation set has the one that `fold` names, the training set all others."},
    {"fold", integer, "null", "[0, 999] or null", "Number of the fold, from 0."},
    {"split_seed", integer, "0", "[0, 1e18]",
     "Chooses the random order of random_split, holdout and folds."},
    {"split_unit", integer, "1", "[1, 1e12] samples",
     "So many consecutive samples stay together in random_split, holdout and folds: the pictures of one "
     "film, or a chunk of a file that is read while it is used."},
    {"skip", integer, "0", "[0, 1e15] samples",
     "Leave out so many samples at the beginning of the set: of the file, or of the random part."},
    {"take", integer, "null", "[1, 1e15] samples or null", "Use so many samples after those; null: all."},
    {"repeat", integer, "1", "[1, 1e6]",
     "An epoch of the training set is so many passes, each in an order of its own."},
};

void read_part(ChoiceOptions& options, const Params& params) {
  using Part = ChoiceOptions::Part;
  const auto only = [&](std::string_view name, Part part) {
    if (!params.has(name)) return false;
    if (options.part != Part::all)
      throw params.error(name, "is a second way to divide the set",
                         "Give one of random_split, holdout and folds.");
    options.part = part;
    return true;
  };
  if (only("random_split", Part::shares)) {
    const std::vector<double>& shares = params.reals("random_split");
    if (shares.size() != 2 || !(shares[0] < shares[1]))
      throw params.error("random_split", "must be two numbers, 0 <= first < last <= 1",
                         "For nine tenths of the samples write [0, 0.9].");
    options.first_share = shares[0];
    options.last_share = shares[1];
  }
  if (only("holdout", Part::holdout)) options.holdout = params.real("holdout");
  if (only("folds", Part::fold)) {
    options.folds = params.integer("folds");
    if (!params.has("fold"))
      throw params.error("folds", "is given without fold", "Say which fold is evaluated: fold: 0.");
    options.fold = params.integer("fold");
    if (options.fold >= options.folds)
      throw params.error("fold", fmt::format("{} is none of {} folds", options.fold, options.folds),
                         "Folds count from 0.");
  } else if (params.has("fold")) {
    throw params.error("fold", "is given without folds", "Say how many there are: folds: 5.");
  }
  for (const std::string_view name : {"split_seed", "split_unit"})
    if (options.part == Part::all && params.given(name))
      throw params.error(name, "is given, but nothing is divided",
                         "Add random_split, holdout or folds, or leave it out.");
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

}  // namespace

std::span<const ParamSpec> choice_table() { return kTable; }

ChoiceOptions choice_options(const Params& params, bool evaluation) {
  ChoiceOptions options;
  read_part(options, params);
  options.split_seed = static_cast<std::uint64_t>(params.integer("split_seed"));
  options.split_unit = params.integer("split_unit");
  options.skip = params.integer("skip");
  options.take = params.optional_integer("take");
  options.repeat = params.integer("repeat");
  options.written = params;
  if (evaluation && options.repeat != 1)
    throw params.error("repeat", "is not for an evaluation, which uses every sample once",
                       "Write it under data.train.");
  return options;
}

std::shared_ptr<const SampleChoice> choose_samples(const ChoiceOptions& options, bool evaluation,
                                                   std::int64_t num_samples) {
  const bool divides = options.part != ChoiceOptions::Part::all;
  if (!divides && options.skip == 0 && !options.take) return nullptr;
  SampleChoice::Spec spec{.num_samples = num_samples, .skip = options.skip, .take = options.take};
  if (divides) spec.part = part_of(options, evaluation, units_of(num_samples, options.split_unit));
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

}  // namespace lockstep
