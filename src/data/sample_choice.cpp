// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/sample_choice.h"

#include <algorithm>

#include "core/error.h"
#include "core/philox.h"

namespace lockstep {

namespace {

// Seeds determine which samples are in a part: do not change it.
constexpr std::uint32_t kPartPurpose = philox_purpose("sample_choice/part");

KeyedPermutation::Key key_of(const RandomPart& part) { return {part.seed, kPartPurpose, 0}; }

}  // namespace

SampleChoice::SampleChoice(const Spec& spec)
    : spec_(spec), units_(spec.part ? units_of(spec.num_samples, spec.part->unit) : spec.num_samples) {
  LOCKSTEP_CHECK(spec.num_samples >= 1 && spec.skip >= 0);
  std::int64_t available = spec.list ? std::ssize(*spec.list) : spec.num_samples;
  if (spec.part) {
    const RandomPart& part = *spec.part;
    LOCKSTEP_CHECK(part.unit >= 1 && part.places.first >= 0 && part.places.first <= part.places.last &&
                   part.places.last <= units_.count());
    const std::int64_t units = part.all_but ? units_.count() - part.places.size() : part.places.size();
    available = units * part.unit;
    const std::int64_t place = units_.index_of(key_of(part), units_.count() - 1);
    if (has_place(part, place)) {
      missing_ = units_.count() * part.unit - spec.num_samples;
      const std::int64_t slot = part.all_but && place >= part.places.last ? place - part.places.size()
                                : part.all_but                            ? place
                                                                          : place - part.places.first;
      after_short_unit_ = (slot + 1) * part.unit - missing_;
      available -= missing_;
    }
  }
  const std::int64_t left = available - spec.skip;
  size_ = spec.take.value_or(left);
  LOCKSTEP_REQUIRE(left >= 1, ErrorKind::config, "no sample is left: {} of {} are chosen, and {} skipped",
                   available, spec.num_samples, spec.skip);
  LOCKSTEP_REQUIRE(size_ >= 1 && size_ <= left, ErrorKind::config,
                   "{} samples are to be taken, but there are {}: {} of {} are chosen, and {} skipped", size_,
                   left, available, spec.num_samples, spec.skip);
}

std::int64_t SampleChoice::in_part(std::int64_t index) const {
  const RandomPart& part = *spec_.part;
  if (index >= after_short_unit_) index += missing_;
  std::int64_t place = index / part.unit;
  if (!part.all_but)
    place += part.places.first;
  else if (place >= part.places.first)
    place += part.places.size();
  return units_.at(key_of(part), place) * part.unit + index % part.unit;
}

std::int64_t SampleChoice::at(std::int64_t index) const {
  LOCKSTEP_DCHECK(index >= 0 && index < size_);
  if (spec_.list) return (*spec_.list)[static_cast<std::size_t>(spec_.skip + index)];
  return spec_.part ? in_part(spec_.skip + index) : spec_.skip + index;
}

BlockGrid SampleChoice::blocks(const BlockGrid& of_set) const {
  if (spec_.list) {  // about as many as a block of the set has
    const double share = static_cast<double>(spec_.list->size()) / static_cast<double>(spec_.num_samples);
    const auto block = static_cast<std::int64_t>(static_cast<double>(of_set.block_samples()) * share);
    return {{{0, spec_.skip}}, size_, std::clamp<std::int64_t>(block, 1, size_)};
  }
  if (!spec_.part) return of_set.part({spec_.skip, spec_.skip + size_});
  const std::int64_t unit = spec_.part->unit;
  const std::int64_t block = unit * std::max<std::int64_t>(1, of_set.block_samples() / unit);
  return {{{0, spec_.skip}}, size_, std::min(block, size_)};
}

}  // namespace lockstep
