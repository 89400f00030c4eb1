// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/normalization.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/in_parallel.h"
#include "data/kept_array.h"
#include "data/reader_dataset.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMostParts = 256;
/// Of all parts together; elements are many numbers, and one part would leave all work to one thread.
constexpr std::int64_t kBytesOfParts = std::int64_t{64} << 20, kBytesOfElements = std::int64_t{256} << 20;

/// The numbers of a part: the count, the means, and the sums of squared deviations from them.
struct Moments {
  explicit Moments(std::span<double> numbers)
      : count(numbers[0]),
        mean(numbers.subspan(1, (numbers.size() - 1) / 2)),
        squares(numbers.subspan(1 + (numbers.size() - 1) / 2)) {}
  double& count;
  std::span<double> mean, squares;

  /// Adds `other_count` values of a channel (Chan et al., equation 2.1). The count is added afterwards.
  void add(std::size_t channel, double other_count, double other_mean, double other_squares) {
    const double total = count + other_count, delta = other_mean - mean[channel];
    mean[channel] += delta * (other_count / total);
    squares[channel] += other_squares + delta * delta * (count * (other_count / total));
  }
  /// Adds one value of each channel, and their count.
  void add_values(std::span<const float> values) {
    const double share = 1 / (count + 1), weight = count * share;
    for (std::size_t c = 0; c < values.size(); ++c) {
      const double delta = static_cast<double>(values[c]) - mean[c];
      mean[c] += delta * share;
      squares[c] += delta * delta * weight;
    }
    count += 1;
  }
};

/// Merges the parts [first, last), of `size` numbers each, into the first one.
void merge(std::span<double> parts, std::size_t size, int first, int last) {
  if (last - first < 2) return;
  const int middle = first + static_cast<int>(std::bit_floor(static_cast<unsigned>(last - first - 1)));
  merge(parts, size, first, middle);
  merge(parts, size, middle, last);
  Moments into(parts.subspan(static_cast<std::size_t>(first) * size, size));
  const Moments from(parts.subspan(static_cast<std::size_t>(middle) * size, size));
  for (std::size_t c = 0; c < into.mean.size(); ++c) into.add(c, from.count, from.mean[c], from.squares[c]);
  into.count += from.count;
}

}  // namespace

NormalizationSums::NormalizationSums(const ReaderDataset& data, const SampleChoice* choice)
    : data_(data),
      choice_(choice),
      values_(data.stored_shape().num_elements()),
      channels_(data.stages().conversion().num_statistics()) {
  const NormalizeBy by = data.stages().conversion().normalize_by();
  LOCKSTEP_CHECK(by != NormalizeBy::none);
  const std::int64_t most = by == NormalizeBy::elements ? kBytesOfElements : kBytesOfParts;
  const std::int64_t fit = most / (values_per_part() * static_cast<std::int64_t>(sizeof(double)));
  num_parts_ = static_cast<int>(std::min(std::clamp<std::int64_t>(fit, 1, kMostParts), num_samples()));
}

std::int64_t NormalizationSums::num_samples() const {
  return choice_ != nullptr ? choice_->size() : data_.size();
}

void NormalizationSums::compute(int part, std::span<double> out) const {
  LOCKSTEP_CHECK(std::ssize(out) == values_per_part());
  std::ranges::fill(out, 0.0);
  Moments sums(out);
  std::vector<float> sample(static_cast<std::size_t>(values_));
  const std::int64_t count = num_samples();
  const std::int64_t first = count / num_parts_ * part + std::min<std::int64_t>(part, count % num_parts_);
  const std::int64_t last = first + count / num_parts_ + (part < count % num_parts_ ? 1 : 0);
  const auto channels = static_cast<std::size_t>(channels_);
  for (std::int64_t i = first; i < last; ++i) {
    const std::int64_t index = choice_ != nullptr ? choice_->at(i) : i;
    data_.gather_scaled(index, sample.data());
    std::size_t used = sample.size();  // without padding
    if (data_.sequence() != nullptr)
      used = used / static_cast<std::size_t>(data_.stored_shape()[0]) *
             static_cast<std::size_t>(data_.sequence_length(index));
    if (used == 0) continue;
    if (used == channels) {
      sums.add_values(std::span<const float>(sample).first(channels));
      continue;
    }
    const auto pixels = static_cast<double>(used / channels);
    for (std::size_t c = 0; c < channels; ++c) {
      // Deviations from the first value: exactly 0 in a constant channel.
      const double origin = sample[c];
      double sum = 0, squares = 0;
      for (std::size_t at = c; at < used; at += channels) sum += sample[at] - origin;
      const double mean = sum / pixels;
      for (std::size_t at = c; at < used; at += channels) {
        const double deviation = (sample[at] - origin) - mean;
        squares += deviation * deviation;
      }
      sums.add(c, pixels, origin + mean, squares);
    }
    sums.count += pixels;
  }
}

void NormalizationSums::select(std::span<const double> parts, std::int64_t first, std::int64_t count,
                               std::span<double> out) const {
  double* to = out.data();
  for (std::size_t at = 0; at < parts.size(); at += static_cast<std::size_t>(values_per_part())) {
    const double* const part = parts.data() + at;
    *to++ = part[0];
    to = std::copy_n(part + 1 + first, count, to);
    to = std::copy_n(part + 1 + channels_ + first, count, to);
  }
}

void NormalizationSums::add_merged(std::span<double> parts, std::int64_t count, Normalization& to) const {
  const auto size = static_cast<std::size_t>(values_of(count));
  merge(parts, size, 0, num_parts_);
  const Moments all(parts.first(size));
  for (std::size_t c = 0; c < all.mean.size(); ++c) {
    const auto deviation = static_cast<float>(std::sqrt(all.squares[c] / all.count));
    to.mean.push_back(static_cast<float>(all.mean[c]));
    to.std.push_back(deviation > 0 ? deviation : 1.0F);
    if (!std::isfinite(to.mean.back()) || !std::isfinite(deviation))
      throw Error(ErrorKind::data, "its values are too large to be normalised", data_.where(0),
                  "Make them smaller with the option scale.");
    if (!(deviation > 0)) to.constant.push_back(std::ssize(to.mean) - 1);
  }
  if (data_.stages().conversion().normalize_by() != NormalizeBy::elements) return;
  const auto extents = data_.stored_shape().extents();
  to.shape.assign(extents.begin(), extents.end());
}

Normalization computed_normalization(const ReaderDataset& data, const SampleChoice* choice, int threads) {
  const NormalizationSums sums(data, choice);
  const auto size = static_cast<std::size_t>(sums.values_per_part());
  std::vector<double> parts(static_cast<std::size_t>(sums.num_parts()) * size);
  in_parallel(threads, sums.num_parts(), [&](std::int64_t part) {
    sums.compute(static_cast<int>(part),
                 std::span(parts).subspan(static_cast<std::size_t>(part) * size, size));
  });
  Normalization values;
  sums.add_merged(parts, sums.num_statistics(), values);
  return values;
}

std::string normalization_text(const Normalization& values) {
  if (!values.shape.empty()) {
    std::vector<std::int64_t> extents{2};
    extents.insert(extents.end(), values.shape.begin(), values.shape.end());
    return kept_array_file(extents, {values.mean, values.std});
  }
  std::string text;
  for (std::size_t c = 0; c < values.mean.size(); ++c)
    text += fmt::format("{}\t{}\n", values.mean[c], values.std[c]);
  return text;
}

namespace {

Normalization of_elements(std::string_view bytes, const std::string& where) {
  const KeptArray array = kept_array(bytes, "normalisation", where);
  Normalization values;
  const auto end_of_mean = array.values.begin() + std::ssize(array.values) / 2;
  values.mean.assign(array.values.begin(), end_of_mean);
  values.std.assign(end_of_mean, array.values.end());
  values.shape.assign(array.extents.begin() + 1, array.extents.end());
  if (array.extents[0] != 2 || values.shape.empty() ||
      !std::ranges::all_of(values.std, [](float std) { return std > 0; }))
    throw Error(ErrorKind::data, "is no array of means and standard deviations", where,
                "Restore the file: the model was trained with its numbers.");
  return values;
}

}  // namespace

Normalization normalization_from_text(std::string_view text, const std::string& where) {
  if (is_npy(text)) return of_elements(text, where);
  Normalization values;
  const char *at = text.data(), *const end = at + text.size();
  const auto read = [&](char after, std::vector<float>& list) {
    float value = 0;
    const auto [stop, failed] = std::from_chars(at, end, value);
    if (failed != std::errc() || stop == end || *stop != after || !std::isfinite(value)) return false;
    list.push_back(value);
    at = stop + 1;
    return true;
  };
  while (at != end)
    if (!read('\t', values.mean) || !read('\n', values.std) || !(values.std.back() > 0)) {
      values.mean.clear();
      break;
    }
  if (values.mean.empty())
    throw Error(ErrorKind::data, "is no list of means and standard deviations", where,
                "Restore the file: the model was trained with its numbers.");
  return values;
}

}  // namespace lockstep
