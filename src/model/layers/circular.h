// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Circular padding of a layer with windows. A primitive pads with zeros, so the input is copied into scratch
// memory together with its circular margins, and the primitive gets axes that are longer and not padded.
#pragma once

#include <array>

#include "model/layers/scratch.h"
#include "model/layers/window.h"

namespace lockstep {

class CircularMargins {
 public:
  /// Takes the padding of the circular axes out of `axes`, whose inputs become longer. Throws Error(config)
  /// if an axis is shorter than its margin.
  void take(WindowAxes& axes, const std::array<bool, 3>& circular, std::int64_t channels,
            const std::string& layer);
  /// Whether an axis has a circular margin.
  bool any() const { return any_; }

  /// The input of n samples with its margins, in scratch memory of a lane, and the lane without it.
  struct Padded {
    Data values;
    Lane lane;
  };
  /// How much scratch memory that is; 0 without circular margins.
  std::size_t bytes(std::int64_t n, DType type) const;
  /// Room for them, not filled.
  Padded room(const Pass& pass, DType type) const;
  Padded padded(const Pass& pass) const;
  /// Sums the gradient of `padded` into the gradient of the layer's input.
  void backward(const Pass& pass, ConstData padded, Data dx) const;

 private:
  MarginSpec spec(std::int64_t n) const;

  MarginSpec spec_;
  bool any_ = false;
};

/// The option of layers with windows.
inline constexpr std::string_view kCircularHelp =
    "axes whose ends meet: steps, depth, height, width or all. What padding adds there are the elements of "
    "the "
    "other end, as on a globe";

}  // namespace lockstep
