// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Optimizer updates on the CPU, per instruction-set level (isa.h). Each element's operations are rounded one
// by one, in the order written, in vectors and in the remainder alike, so a range may be split anywhere.
#include "kernels/update.h"

#include "kernels/isa.h"
#include "kernels/rules.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

/// The loop of a rule. `rule` is a copy, so that its numbers stay in registers.
template <bool kDecays, typename Rule, typename... Slots>
inline void loop(const Rule rule, float coupled, float kept, std::int64_t count, float* __restrict__ w,
                 const float* __restrict__ g, Slots* __restrict__... slots) {
  for (std::int64_t i = 0; i < count; ++i) {
    float weight = w[i], gradient = g[i];
    if constexpr (kDecays) {
      gradient += coupled * weight;
      weight *= kept;
    }
    float slot[sizeof...(Slots) + 1] = {slots[i]..., 0.0F};
    rule.apply(weight, gradient, slot);
    w[i] = weight;
    int k = 0;
    ((slots[i] = slot[k++]), ...);
    (void)k;
  }
}

template <bool kDecays, typename Rule>
inline void move(const Rule& rule, const RuleStep& step, std::int64_t count, float* w, const float* g,
                 const RuleSlots& slots, std::int64_t at) {
  float* const* s = slots.at;
  if constexpr (Rule::kSlots == 0)
    loop<kDecays>(rule, step.coupled, step.kept, count, w + at, g);
  else if constexpr (Rule::kSlots == 1)
    loop<kDecays>(rule, step.coupled, step.kept, count, w + at, g, s[0] + at);
  else if constexpr (Rule::kSlots == 2)
    loop<kDecays>(rule, step.coupled, step.kept, count, w + at, g, s[0] + at, s[1] + at);
  else
    loop<kDecays>(rule, step.coupled, step.kept, count, w + at, g, s[0] + at, s[1] + at, s[2] + at);
}

constexpr std::int64_t kZeros = 4096;
constexpr float zeros[kZeros] = {};

/// Calls body(first number, count, gradients) for the parts of a table that are updated.
template <typename Body>
inline void for_each_stretch(const RowUpdate& update, const Body& body) {
  const auto others = [&](std::int64_t first_row, std::int64_t last_row) {
    if (!update.others) return;
    const std::int64_t end = last_row * update.width;
    for (std::int64_t at = first_row * update.width; at < end; at += kZeros)
      body(at, at + kZeros < end ? kZeros : end - at, zeros);
  };
  const std::int64_t given = *update.count;
  std::int64_t next = update.first, k = 0;
  while (k < given && update.rows[k] < update.first) ++k;
  for (; k < given && update.rows[k] < update.last; ++k) {
    others(next, update.rows[k]);
    body(update.rows[k] * update.width, update.width, update.values + k * update.width);
    next = update.rows[k] + 1;
  }
  others(next, update.last);
}

/// True: the bits of a number, without its sign, are above `most`.
inline bool any_above(const float* values, std::int64_t count, std::int32_t most) {
  std::int32_t signs = 0;
  for (std::int64_t i = 0; i < count; ++i)
    signs |= most - (__builtin_bit_cast(std::int32_t, values[i]) & 0x7FFFFFFF);
  return signs < 0;
}

class Update final : public UpdateKernels {
 public:
  void look(const Lane&, std::int64_t count, const float* values, float most,
            NumbersFound* found) const override {
    if (!any_above(values, count, __builtin_bit_cast(std::int32_t, most))) return;
    found->large = 1;
    // NaN is above infinity, which `most` may be.
    if (any_above(values, count, most > 0x1.fffffep127F ? 0x7F800000 : 0x7F7FFFFF)) found->not_finite = 1;
  }

  void look_at_rows(const Lane& lane, const SparseRows& gradient, std::int64_t first, std::int64_t last,
                    std::int64_t width, float most, NumbersFound* found) const override {
    const std::int64_t end = last < *gradient.count ? last : *gradient.count;
    if (end > first) look(lane, (end - first) * width, gradient.values + first * width, most, found);
  }

  void unscale(const Lane&, std::int64_t count, float factor, float* g,
               std::int32_t* not_finite) const override {
    std::uint32_t largest = 0;  // the bits of a magnitude increase with it, up to infinity; NaN is above
    for (std::int64_t i = 0; i < count; ++i) {
      g[i] *= factor;
      const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, g[i]) & 0x7FFFFFFFU;
      largest = bits > largest ? bits : largest;
    }
    if (largest >= 0x7F800000U) *not_finite = 1;
  }

  void unscale_rows(const Lane& lane, const SparseRows& gradient, std::int64_t first, std::int64_t last,
                    std::int64_t width, float factor, std::int32_t* not_finite) const override {
    const std::int64_t end = last < *gradient.count ? last : *gradient.count;
    if (end > first)
      unscale(lane, (end - first) * width, factor, gradient.values + first * width, not_finite);
  }

  void apply(const Lane&, const RuleStep& step, std::int64_t count, float* w, const float* g,
             const RuleSlots& slots) const override {
    Rules::with(step, [&](const auto& given) {
      const auto rule = begun(given);
      if (step.decays())
        move<true>(rule, step, count, w, g, slots, 0);
      else
        move<false>(rule, step, count, w, g, slots, 0);
    });
  }

  void apply_rows(const Lane&, const RuleStep& step, const RowUpdate& update, float* w,
                  const RuleSlots& slots) const override {
    Rules::with(step, [&](const auto& given) {
      const auto rule = begun(given);
      for_each_stretch(update, [&](std::int64_t at, std::int64_t count, const float* g) {
        if (step.decays())
          move<true>(rule, step, count, w, g, slots, at);
        else
          move<false>(rule, step, count, w, g, slots, at);
      });
    });
  }
};

}  // namespace

const UpdateKernels& update_kernels() {
  static const Update kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
