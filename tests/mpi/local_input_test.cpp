// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples of a simulation: those that exist on one rank each (Input::local), sets that grow between calls
// (TrainOptions::accept_new_samples), and samples that are read where they lie (Input::from_memory).
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "comm/shared_error.h"
#include "config/params.h"
#include "io/checkpoint.h"
#include "session/run_state.h"
#include "support/estimator_run.h"
#include "support/shared_error_text.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string digest_of(CommEnvironment& ranks, const std::string& run_dir) {
  return find_checkpoint(ranks.world(), run_dir, "").header.digest;
}

/// Calls body(ranks, "2") in groups of 1, 2, ... ranks of the run, one after the other.
template <typename Body>
void on_each_number_of_ranks(Body body) {
  for (int count = 1; count <= test_world().size(); ++count) {
    const bool is_in = test_world().rank() < count;
    const std::unique_ptr<CommEnvironment> group = test_environment().split(is_in ? 0 : 1);
    if (is_in) body(*group, std::to_string(count));
    test_world().barrier("the next group");
  }
}

/// The share of a rank: different numbers, and none on rank 1 of three or more.
SampleArrays share_of(const SampleArrays& all, int rank, int ranks) {
  const auto weight = [&](int r) { return ranks >= 3 && r == 1 ? 0 : r + 1; };
  std::int64_t before = 0, total = 0;
  for (int r = 0; r < ranks; ++r) {
    if (r < rank) before += weight(r);
    total += weight(r);
  }
  const auto size = static_cast<std::int64_t>(all.classes.size());
  const std::int64_t first = size * before / total, last = size * (before + weight(rank)) / total;
  const std::int64_t values = all.shape.num_elements();
  return {.shape = all.shape,
          .features = {all.features.begin() + first * values, all.features.begin() + last * values},
          .classes = {all.classes.begin() + first, all.classes.begin() + last}};
}

InputFunction local_input(CommEnvironment& ranks, std::int64_t size, const std::string& name = "train") {
  return [&ranks, size, name] {
    return Input::local(name, share_of(class_samples(size), ranks.world().rank(), ranks.world().size()));
  };
}

TEST(LocalInput, HasTheBitsOfTheWholeSetOnAnyNumberOfRanks) {
  const std::string whole = fresh_run_dir("whole"), parts = fresh_run_dir("local");
  Estimator(test_environment(), small_model, small_run(whole)).train(class_input(), {.max_steps = 9});
  const std::string expected = digest_of(test_environment(), whole);
  on_each_number_of_ranks([&](CommEnvironment& ranks, const std::string& count) {
    Estimator estimator(ranks, small_model, small_run(parts + count));
    estimator.train(local_input(ranks, 60), {.max_steps = 9, .eval_input = local_input(ranks, 31, "eval")});
    EXPECT_EQ(digest_of(ranks, parts + count), expected) << count;
    EXPECT_EQ(estimator.evaluate(local_input(ranks, 31, "eval")).samples, 31);
  });
}

TEST(LocalInput, IsPredictedInTheOrderOfTheRanks) {
  Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("order")));
  estimator.train(class_input(), {.max_steps = 4});
  const auto rows = [&](const InputFunction& input) {
    std::vector<float> all;
    const auto stream = estimator.predict(input);
    EXPECT_EQ(stream->size(), 37);
    while (stream->next()) all.insert(all.end(), stream->values().begin(), stream->values().end());
    return all;
  };
  const std::vector<float> whole = rows(class_input("eval", 37));
  EXPECT_EQ(rows(local_input(test_environment(), 37, "eval")), whole);
  EXPECT_EQ(whole.empty(), test_world().rank() != 0);
}

/// Samples of 4 kB that all differ.
SampleArrays large_samples(std::int64_t size) {
  constexpr std::int64_t kValues = 1000;
  SampleArrays all{.shape = Shape{kValues}};
  for (std::int64_t i = 0; i < kValues * size; ++i)
    all.features.push_back(static_cast<float>((i * 7919) % 10007) * 1e-4F + static_cast<float>(i / kValues));
  for (std::int64_t i = 0; i < size; ++i) all.classes.push_back(static_cast<std::int32_t>(i % 3));
  return all;
}

TEST(LocalInput, OfManyPiecesIsCompleteInCopiesAndInTheMemoryOfTheHost) {
  for (const std::int64_t size :
       {200, 4000}) {  // 0.8 MB, which each rank copies, and 16 MB, which hosts share
    SampleArrays all = large_samples(size);
    const std::string whole = fresh_run_dir("much"), parts = fresh_run_dir("much_local");
    const auto lent = [&] {
      return Input::from_memory("train",
                                {.shape = all.shape, .features = all.features, .classes = all.classes});
    };
    const auto local = [&] {
      return Input::local("train", share_of(all, test_world().rank(), test_world().size()));
    };
    Estimator(test_environment(), small_model, small_run(whole)).train(lent, {.max_steps = 3});
    Estimator(test_environment(), small_model, small_run(parts)).train(local, {.max_steps = 3});
    EXPECT_EQ(digest_of(test_environment(), parts), digest_of(test_environment(), whole)) << size;
    // Few samples are in the digest of three steps. All are in the fingerprint of the run's data, and other
    // ones are refused.
    Estimator(test_environment(), small_model, small_run(whole)).train(local, {.max_steps = 5});
    all.features.back() += 1;
    EXPECT_THAT(shared_error([&] {
                  Estimator(test_environment(), small_model, small_run(whole)).train(local, {.max_steps = 7});
                }),
                HasSubstr("data changed"))
        << size;
  }
}

TEST(LocalInput, ComputesItsSamplesOnTheirRankOnly) {
  const std::string whole = fresh_run_dir("arrays"), parts = fresh_run_dir("computed");
  Estimator(test_environment(), small_model, small_run(whole)).train(class_input(), {.max_steps = 5});
  const SampleArrays mine = share_of(class_samples(), test_world().rank(), test_world().size());
  std::int64_t calls = 0;
  Estimator(test_environment(), small_model, small_run(parts))
      .train(
          [&] {
            return Input::local("train", ComputedSamples{.size = std::ssize(mine.classes),
                                                         .shape = Shape{6},
                                                         .has_classes = true,
                                                         .fill = [&](std::int64_t sample, float* features,
                                                                     std::int32_t* label, float*) {
                                                           ++calls;
                                                           const auto i = static_cast<std::size_t>(sample);
                                                           std::copy_n(&mine.features[6 * i], 6, features);
                                                           *label = mine.classes[i];
                                                         }});
          },
          {.max_steps = 5});
  EXPECT_EQ(digest_of(test_environment(), parts), digest_of(test_environment(), whole));
  EXPECT_EQ(calls, std::ssize(mine.classes));
}

/// The error of a training with this input of the last rank.
std::string error_with(const std::function<void(SampleArrays&)>& change) {
  const int last = test_world().size() - 1;
  Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("wrong")));
  return shared_error([&] {
    estimator.train(
        [&] {
          SampleArrays mine = share_of(class_samples(), test_world().rank(), test_world().size());
          if (test_world().rank() == last) change(mine);
          return Input::local("train", std::move(mine));
        },
        {.max_steps = 2});
  });
}

TEST(LocalInput, OtherSamplesOnOneRankAreAnErrorOfAllThatNamesIt) {
  if (test_world().size() == 1) GTEST_SKIP() << "needs several ranks";
  const std::string rank = "rank " + std::to_string(test_world().size() - 1);
  EXPECT_THAT(error_with([](SampleArrays& samples) {
                samples.shape = Shape{3};
                samples.classes.insert(samples.classes.end(), samples.classes.begin(), samples.classes.end());
              }),
              AllOf(HasSubstr("rank 0 are 6 float32 with class indices"),
                    HasSubstr("those of " + rank + " 3 float32")));
  EXPECT_THAT(error_with([](SampleArrays& samples) { samples.classes = {}; }),
              HasSubstr("those of " + rank + " 6 float32 with no labels"));
  EXPECT_THAT(error_with([](SampleArrays& samples) { samples.classes.pop_back(); }),
              AllOf(HasSubstr("labels for"), HasSubstr(rank)));
  EXPECT_THAT(error_with([](SampleArrays& samples) {
                samples.targets.assign(samples.classes.begin(), samples.classes.end());
                samples.classes = {};
              }),
              HasSubstr("those of " + rank + " 6 float32 with 1 targets"));
}

TEST(LocalInput, AWrongValueIsNamedWithRankAndSample) {
  const int ranks = test_world().size();
  const std::string place =
      "input train, sample 2" + (ranks == 1 ? ":" : " of rank " + std::to_string(ranks - 1));
  EXPECT_THAT(error_with([](SampleArrays& samples) {
                samples.features[2 * 6 + 1] = std::numeric_limits<float>::quiet_NaN();
              }),
              HasSubstr(place));
  EXPECT_THAT(error_with([](SampleArrays& samples) { samples.classes[2] = 7; }), HasSubstr(place));
}

TEST(LocalInput, WithoutSamplesOnAnyRankIsRefused) {
  Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("none")));
  EXPECT_THAT(shared_error([&] {
                estimator.train([] { return Input::local("train", SampleArrays{.shape = Shape{6}}); },
                                {.max_steps = 2});
              }),
              HasSubstr("no rank has samples"));
}

TEST(LocalInput, AFunctionThatFailsOnOneRankEndsTheCallOnAll) {
  const int last = test_world().size() - 1;
  const auto input = [&](bool local) {
    return [=] {
      ComputedSamples samples{.size = 60,
                              .shape = Shape{6},
                              .has_classes = true,
                              .fill = [=](std::int64_t sample, float* features, std::int32_t* label, float*) {
                                if (sample == 17 && test_world().rank() == last)
                                  throw std::runtime_error("the probe is gone");
                                std::fill_n(features, 6, static_cast<float>(sample));
                                *label = 0;
                              }};
      return local ? Input::local("train", std::move(samples)) : Input::computed("train", std::move(samples));
    };
  };
  for (const bool local : {true, false}) {
    Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("fails")));
    EXPECT_THAT(shared_error([&] { estimator.train(input(local), {.max_steps = 2}); }),
                AllOf(HasSubstr("input train, sample 17"), HasSubstr("the probe is gone")))
        << local;
  }
}

TEST(LocalInput, TrainingAndEvaluationSamplesOfOneNameAreRefused) {
  Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("one_name")));
  const InputFunction input = local_input(test_environment(), 30);
  EXPECT_THAT(shared_error([&] { estimator.train(input, {.max_steps = 2, .eval_input = input}); }),
              HasSubstr("both called 'train'"));
}

TEST(GrownSet, ContinuesWithTheSameBitsOnAnyNumberOfRanksAndAfterAStop) {
  const std::string whole = fresh_run_dir("grown"), parts = fresh_run_dir("grown_local");
  Estimator first(test_environment(), small_model, small_run(whole));
  first.train(class_input("train", 40), {.steps = 5});
  first.train(class_input("train", 60), {.steps = 6, .accept_new_samples = true});
  const FoundCheckpoint found = find_checkpoint(test_world(), whole, "");
  EXPECT_EQ(found.header.global_step, 11);
  // 5 steps of 40 samples: an epoch of three, and two of the next. The third step of it has the samples from
  // 32 to 48 of the new order, its fourth the rest; then four steps of an epoch of 60.
  EXPECT_EQ(found.header.epoch, 3);
  EXPECT_EQ(found.header.samples_consumed, 0);
  on_each_number_of_ranks([&](CommEnvironment& ranks, const std::string& count) {
    const std::string run_dir = parts + count;
    Estimator(ranks, small_model, small_run(run_dir)).train(local_input(ranks, 40), {.max_steps = 5});
    EXPECT_THAT(
        shared_error([&] {
          Estimator(ranks, small_model, small_run(run_dir)).train(local_input(ranks, 60), {.max_steps = 11});
        }),
        AllOf(HasSubstr("training data changed"), HasSubstr("accept_new_samples")));
    Estimator(ranks, small_model, small_run(run_dir))
        .train(local_input(ranks, 60), {.max_steps = 11, .stop_at = 8, .accept_new_samples = true});
    Estimator(ranks, small_model, small_run(run_dir))
        .train(local_input(ranks, 60), {.max_steps = 11});  // these samples are known now
    EXPECT_EQ(digest_of(ranks, run_dir), found.header.digest) << count;
  });
}

TEST(GrownSet, OfAnotherShapeIsRefused) {
  const std::string run_dir = fresh_run_dir("grown_shape");
  Estimator(test_environment(), small_model, small_run(run_dir)).train(class_input(), {.max_steps = 2});
  EXPECT_THAT(shared_error([&] {
                Estimator(test_environment(), small_model, small_run(run_dir))
                    .train(
                        [] {
                          SampleArrays samples = class_samples();
                          samples.shape = Shape{12};
                          samples.classes.resize(30);
                          return Input::arrays("train", std::move(samples));
                        },
                        {.max_steps = 4, .accept_new_samples = true});
              }),
              HasSubstr("another model"));
}

TEST(FromMemory, ReadsTheSamplesWhereTheyLie) {
  const std::string whole = fresh_run_dir("copied"), lent = fresh_run_dir("lent");
  SampleArrays samples = class_samples();
  const Input input = Input::from_memory(
      "lent", {.shape = samples.shape, .features = samples.features, .classes = samples.classes});
  for (float& value : samples.features) value *= 0.5F;  // after the input was made: it has no copy
  for (std::int32_t& label : samples.classes) label = (label + 1) % 3;
  RunConfig run = small_run(lent);
  Estimator(test_environment(), small_model, run).train([&] { return input; }, {.max_steps = 5});
  Estimator(test_environment(), small_model, small_run(whole))
      .train([&] { return Input::arrays("lent", samples); }, {.max_steps = 5});
  EXPECT_EQ(digest_of(test_environment(), lent), digest_of(test_environment(), whole));
}

TEST(FromMemory, NumbersOfOtherTypesHaveTheBitsOfFloats) {
  const std::string floats = fresh_run_dir("floats"), others = fresh_run_dir("others");
  const SampleArrays samples = class_samples();
  const std::vector<double> features(samples.features.begin(), samples.features.end());
  const std::vector<std::int64_t> classes(samples.classes.begin(), samples.classes.end());
  for (const bool local : {false, true}) {
    Estimator(test_environment(), small_model, small_run(floats))
        .train([&] { return Input::arrays("train", samples); }, {.max_steps = 5});
    const MemorySamples mine{.shape = samples.shape, .features = features, .classes = classes};
    const MemorySamples none{.shape = samples.shape, .features = std::span<const double>()};
    const std::string run_dir = others + (local ? "_local" : "");
    Estimator(test_environment(), small_model, small_run(run_dir))
        .train(
            [&] {
              return local ? Input::local("train", test_world().rank() == 0 ? mine : none)
                           : Input::from_memory("train", mine);
            },
            {.max_steps = 5});
    // Not the digests of the sets, which have the types in them: those of the variables and slots.
    EXPECT_EQ(digest_of(test_environment(), run_dir), digest_of(test_environment(), floats)) << local;
  }
}

TEST(FromMemory, RefusesClassesThatAreNoWholeNumbersOrTooLarge) {
  const std::vector<float> features(12, 1.0F), fractions(2, 0.5F);
  const std::vector<std::int64_t> large = {1, std::int64_t{1} << 40};
  const auto error = [&](const NumberSpan& classes) {
    Estimator estimator(test_environment(), small_model, small_run(fresh_run_dir("classes")));
    return shared_error([&] {
      estimator.train(
          [&] {
            return Input::from_memory("train", {.shape = Shape{6}, .features = features, .classes = classes});
          },
          {.max_steps = 1});
    });
  };
  EXPECT_THAT(error(fractions), HasSubstr("class indices of type float32"));
  EXPECT_THAT(error(large), AllOf(HasSubstr("1099511627776 of sample 1"), HasSubstr("32 bits")));
}

}  // namespace
}  // namespace lockstep
