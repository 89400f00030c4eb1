// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The rate of a variable from its norm: LARS and LAMB. `w2` is the sum of squares of the variable and `x2`
// that of its gradient or direction, in device memory.
#pragma once

#include "kernels/rules/rule.h"

namespace lockstep {
namespace {  // each file's own, see isa.h

LOCKSTEP_ELEMENT double root_of_sum(double x) {
#if defined(__CUDA_ARCH__)
  return sqrt(x);
#else
  return __builtin_sqrt(x);
#endif
}

/// rate |w| / (|x| + decay |w| + epsilon), with |w| limited to [low, high]; `plain` where a norm is zero. In
/// double, rounded once.
LOCKSTEP_ELEMENT float trust_rate(double w2, double x2, double rate, double decay, double epsilon, double low,
                                  double high, double plain) {
  const double w = root_of_sum(w2), x = root_of_sum(x2);
  const double above = w < low ? low : w, limited = above > high ? high : above;
  const double adapted = rate * limited / (x + decay * w + epsilon);
  return static_cast<float>(w == 0.0 || x == 0.0 ? plain : adapted);
}

}  // namespace
}  // namespace lockstep
