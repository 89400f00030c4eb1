// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/normalize_sets.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "comm/agree.h"
#include "core/in_parallel.h"
#include "core/log.h"
#include "core/name_list.h"
#include "core/range.h"
#include "core/timer.h"
#include "data/normalization.h"
#include "data/reader_dataset.h"
#include "data/table_info.h"
#include "run/setup/whiten_sets.h"
#include "session/run_normalization.h"

namespace lockstep {

namespace {

constexpr double kProgressSeconds = 10;
constexpr std::int64_t kGatheredNumbers = std::int64_t{8} << 20;  ///< on each rank: 64 MiB

/// Parts of a rank, of the same number on all ranks; the last ones may be beyond the end.
Range parts_of_rank(const Communicator& world, int num_parts) {
  const int each = (num_parts + world.size() - 1) / world.size();
  return {std::int64_t{world.rank()} * each, std::int64_t{world.rank() + 1} * each};
}

/// The parts of this rank, by its threads.
void compute_parts(const NormalizationSums& sums, const Range& own, int threads, bool is_chief,
                   std::span<double> out) {
  const Timer timer;
  std::atomic<std::int64_t> done{0};
  std::atomic<std::int64_t> said{0};  // progress reports
  const std::int64_t count =
      std::max<std::int64_t>(std::min<std::int64_t>(own.last, sums.num_parts()) - own.first, 0);
  const auto size = static_cast<std::size_t>(sums.values_per_part());
  in_parallel(threads, count, [&](std::int64_t i) {
    sums.compute(static_cast<int>(own.first + i), out.subspan(static_cast<std::size_t>(i) * size, size));
    const std::int64_t now = ++done;
    std::int64_t reports = said;
    if (is_chief && timer.seconds() > kProgressSeconds * static_cast<double>(reports + 1) &&
        said.compare_exchange_strong(reports, static_cast<std::int64_t>(timer.seconds() / kProgressSeconds)))
      log_info("normalisation: {} of {} parts of rank 0", now, count);
  });
}

/// `choice`: of the samples of all inputs.
Normalization shared_normalization(Communicator& world, const ReaderDataset& train,
                                   const SampleChoice* choice, const std::string& name, int threads) {
  const Timer timer;
  const NormalizationSums sums(train, choice);
  const Range own = parts_of_rank(world, sums.num_parts());
  std::vector<double> mine(static_cast<std::size_t>(own.size() * sums.values_per_part()));
  agree(
      world, [&] { compute_parts(sums, own, threads, world.rank() == 0, mine); },
      "computing the normalisation");
  // Of many elements only some at a time, so that no rank needs the memory for all parts of all.
  const std::int64_t each = std::clamp<std::int64_t>(
      kGatheredNumbers / NormalizationSums::values_of(own.size() * world.size()), 1, sums.num_statistics());
  Normalization values;
  std::vector<double> some, all;
  for (std::int64_t first = 0; first < sums.num_statistics(); first += each) {
    const std::int64_t count = std::min(each, sums.num_statistics() - first);
    some.resize(static_cast<std::size_t>(own.size() * NormalizationSums::values_of(count)));
    all.resize(some.size() * static_cast<std::size_t>(world.size()));
    sums.select(mine, first, count, some);
    world.allgather(some.data(), some.size() * sizeof(double), all.data(), "normalisation");
    sums.add_merged(all, count, values);
  }
  if (world.rank() == 0) {
    log_info("normalisation{}: mean and standard deviation of {} samples, {} {}{}, in {:.1f} s",
             name.empty() ? "" : " of " + name, sums.num_samples(), values.mean.size(),
             values.shape.empty() ? "channel" : "element", values.mean.size() == 1 ? "" : "s",
             timer.seconds());
  }
  return values;
}

/// "column age", "channel 3 (from 0)".
std::string channel_text(const ReaderDataset& data, std::int64_t channel) {
  if (const TableInfo* const table = data.table(); table != nullptr) {
    const auto is_number = [](const TableInfo::Column& column) { return column.values.empty(); };
    if (std::ssize(table->features) > channel && std::ranges::all_of(table->features, is_number))
      return name_of(table->features[static_cast<std::size_t>(channel)]);
  }
  return fmt::format("channel {} (from 0)", channel);
}

/// "[3, 17, 0]", the place of an element in a sample.
std::string element_text(std::span<const std::int64_t> shape, std::int64_t element) {
  std::string text;
  for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis])
    text = fmt::format("{}{}{}", element % shape[axis], text.empty() ? "" : ", ", text);
  return "[" + text + "]";
}

/// What is constant in an input: "3 of 8 channels of x (channel 0 (from 0), ...)". Empty: nothing is.
std::string constants_text(const ReaderDataset& data, const Normalization& values, const std::string& name) {
  if (values.constant.empty()) return {};
  const bool elements = !values.shape.empty();
  std::vector<std::string> constant;
  for (const std::int64_t number : values.constant)
    constant.push_back(elements ? element_text(values.shape, number) : channel_text(data, number));
  return fmt::format("{} of {} {}{} ({})", values.constant.size(), values.mean.size(),
                     elements ? "elements" : "channels", name.empty() ? "" : " of " + name,
                     name_list(constant));
}

/// Reads the numbers on the chief, for all ranks.
Normalization kept_values(Communicator& world, const std::string& run_dir, const KeptFiles* kept,
                          const std::string& name, NormalizeBy by) {
  std::string text;
  agree(
      world,
      [&] {
        if (world.rank() != 0) return;
        text = kept_normalization(run_dir, name, by, kept);
        normalization_from_text(text, normalization_path(run_dir, name, by));
      },
      "reading the normalisation");
  std::int64_t size = std::ssize(text);
  world.broadcast(&size, sizeof size, 0, "normalisation");
  text.resize(static_cast<std::size_t>(size));
  world.broadcast(text.data(), text.size(), 0, "normalisation");
  return normalization_from_text(text, normalization_path(run_dir, name, by));
}

/// An input or target of a set, which gets its numbers.
class PartToFit {
 public:
  /// `parts`: of the set, or none if there is no set.
  PartToFit(const std::vector<DatasetPart>& parts, std::size_t number)
      : given_(parts.empty() ? nullptr : parts[number].data) {}

  /// Null: there is no set.
  const ReaderDataset* get() const { return fitted_ != nullptr ? fitted_.get() : given_; }
  void fit(const StageNumbers& numbers) {
    if (given_ != nullptr) fitted_ = std::make_shared<const ReaderDataset>(get()->fitted(numbers));
  }
  /// Null: it has got no numbers.
  const std::shared_ptr<const ReaderDataset>& fitted() const { return fitted_; }

 private:
  const ReaderDataset* given_;
  std::shared_ptr<const ReaderDataset> fitted_;
};

void replace_parts(UsedDataset& set, const std::vector<std::shared_ptr<const ReaderDataset>>& parts) {
  if (std::ranges::any_of(parts, [](const auto& part) { return part != nullptr; }))
    set = {set->with_parts(parts), set.use()};
}

}  // namespace

void normalize_sets(Communicator& world, UsedDataset& train, UsedDataset& eval, const std::string& kept_in,
                    int threads, const KeptFiles* kept) {
  const SampleChoice* const choice = train ? train.use().choice.get() : nullptr;
  const auto parts_of = [](const UsedDataset& set) {
    return set ? set->parts() : std::vector<DatasetPart>{};
  };
  const std::vector<DatasetPart> train_parts = parts_of(train), eval_parts = parts_of(eval);
  std::vector<std::shared_ptr<const ReaderDataset>> new_train, new_eval;
  std::vector<std::string> constant;
  bool elements = false;
  for (const DatasetPart& part : train ? train_parts : eval_parts) {
    PartToFit of_train(train_parts, new_train.size()), of_eval(eval_parts, new_eval.size());
    const auto fit = [&](const StageNumbers& numbers) {
      of_train.fit(numbers);
      of_eval.fit(numbers);
    };
    const NormalizeBy by = part.data->stages().conversion().normalize_by();
    if (by != NormalizeBy::none) {
      LOCKSTEP_CHECK(train || !kept_in.empty());
      const ReaderDataset& data = *of_train.get();
      auto values = std::make_shared<const Normalization>(
          kept_in.empty() ? shared_normalization(world, data, choice, part.name, threads)
                          : kept_values(world, kept_in, kept, part.name, by));
      if (const std::string text = constants_text(data, *values, part.name);
          !text.empty() && kept_in.empty()) {
        constant.push_back(text);
        elements |= !values->shape.empty();
      }
      fit({.normalization = std::move(values)});
    }
    if (part.data->stages().whitening().options().used())
      fit({.whitening = std::make_shared<const Whitening>(
               shared_whitening(world, of_train.get(), choice, part.name, {kept_in, kept}, threads))});
    new_train.push_back(of_train.fitted());
    new_eval.push_back(of_eval.fitted());
  }
  if (!constant.empty() && world.rank() == 0)
    log_warning("{} have one value in all samples, and are divided by 1: {}",
                elements ? "channels or elements" : "channels", name_list(constant));
  if (train) replace_parts(train, new_train);
  if (eval) replace_parts(eval, new_eval);
}

}  // namespace lockstep
