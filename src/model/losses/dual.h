// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a loss that is given as a formula (formula_loss.h). A Dual has a value and its slope, the
// derivative by the output: each function applies the chain rule, so the slope of the result is that of the
// formula (forward-mode differentiation; Griewank and Walther 2008, "Evaluating Derivatives", chapter 3). A
// Constant is a value that does not depend on the output, as the label is. Both mix with ints, floats and
// doubles:
//
//   sqrt((output - label) * (output - label) + 1.0) - 1.0
//
// Functions are found by the arguments, so a formula names them without a namespace: abs, exp, expm1, log,
// log1p, sqrt, pow, tanh, sin, cos, min, max, sigmoid, softplus. Comparisons compare values; both sides of
// a ?: may be a Dual, or one of them a number.
//
// Where a function has no derivative: abs has the slope 0 at 0; min and max have that of their first argument
// where both are equal; sqrt and log at 0, and pow(x, p) with p < 1 at 0, have an infinite slope, which times
// 0 is NaN: add a small number below them. NaN goes through all functions.
#pragma once

#include <cmath>
#include <concepts>
#include <type_traits>

namespace lockstep::formula {

struct Constant {
  double value = 0;
  constexpr Constant(double number) : value(number) {}
};

struct Dual {
  double value = 0, slope = 0;
  constexpr Dual(double number) : value(number) {}
  constexpr Dual(Constant number) : value(number.value) {}
  constexpr Dual(double number, double by_output) : value(number), slope(by_output) {}
};

template <typename T>
concept Number = std::same_as<T, Dual> || std::same_as<T, Constant>;
/// What may stand in a formula.
template <typename T>
concept Operand = Number<T> || std::is_arithmetic_v<T>;
/// At least one of the two is a number of a formula, so that plain arithmetic stays what it is.
template <typename A, typename B>
concept Operands = Operand<A> && Operand<B> &&(Number<A> || Number<B>);

template <Operand T>
constexpr double value_of(const T& x) {
  if constexpr (Number<T>)
    return x.value;
  else
    return static_cast<double>(x);
}

/// The result of a function of one number, with its derivative there.
template <Number T>
constexpr T chained(const T& x, double value, double derivative) {
  if constexpr (std::same_as<T, Dual>)
    return {value, derivative * x.slope};
  else
    return {value};
}

/// The result of a function of two, with its derivatives by each.
template <typename A, typename B>
requires Operands<A, B>
constexpr auto chained(const A& a, const B& b, double value, double by_a, double by_b) {
  if constexpr (std::same_as<A, Dual> && std::same_as<B, Dual>)
    return Dual{value, by_a * a.slope + by_b * b.slope};
  else if constexpr (std::same_as<A, Dual>)
    return Dual{value, by_a * a.slope};
  else if constexpr (std::same_as<B, Dual>)
    return Dual{value, by_b * b.slope};
  else
    return Constant{value};
}

template <typename A, typename B>
requires Operands<A, B>
constexpr auto operator+(const A& a, const B& b) { return chained(a, b, value_of(a) + value_of(b), 1, 1); }

template <typename A, typename B>
requires Operands<A, B>
constexpr auto operator-(const A& a, const B& b) { return chained(a, b, value_of(a) - value_of(b), 1, -1); }

template <typename A, typename B>
requires Operands<A, B>
constexpr auto operator*(const A& a, const B& b) {
  return chained(a, b, value_of(a) * value_of(b), value_of(b), value_of(a));
}

template <typename A, typename B>
requires Operands<A, B>
constexpr auto operator/(const A& a, const B& b) {
  const double quotient = value_of(a) / value_of(b);
  return chained(a, b, quotient, 1 / value_of(b), -quotient / value_of(b));
}

template <Number T>
constexpr T operator-(const T& x) {
  return chained(x, -x.value, -1);
}
template <Number T>
constexpr T operator+(const T& x) {
  return x;
}

template <Number T, Operand B>
constexpr T& operator+=(T& a, const B& b) {
  return a = a + b;
}
template <Number T, Operand B>
constexpr T& operator-=(T& a, const B& b) {
  return a = a - b;
}
template <Number T, Operand B>
constexpr T& operator*=(T& a, const B& b) {
  return a = a * b;
}
template <Number T, Operand B>
constexpr T& operator/=(T& a, const B& b) {
  return a = a / b;
}

template <typename A, typename B>
requires Operands<A, B>
constexpr bool operator==(const A& a, const B& b) { return value_of(a) == value_of(b); }
template <typename A, typename B>
requires Operands<A, B>
constexpr bool operator<(const A& a, const B& b) { return value_of(a) < value_of(b); }
template <typename A, typename B>
requires Operands<A, B>
constexpr bool operator>(const A& a, const B& b) { return value_of(a) > value_of(b); }
template <typename A, typename B>
requires Operands<A, B>
constexpr bool operator<=(const A& a, const B& b) { return value_of(a) <= value_of(b); }
template <typename A, typename B>
requires Operands<A, B>
constexpr bool operator>=(const A& a, const B& b) { return value_of(a) >= value_of(b); }

template <Number T>
T abs(const T& x) {
  return chained(x, std::fabs(x.value), x.value > 0 ? 1.0 : x.value < 0 ? -1.0 : x.value);
}

template <Number T>
T exp(const T& x) {
  const double value = std::exp(x.value);
  return chained(x, value, value);
}
/// exp(x) - 1, exact near 0.
template <Number T>
T expm1(const T& x) {
  return chained(x, std::expm1(x.value), std::exp(x.value));
}
template <Number T>
T log(const T& x) {
  return chained(x, std::log(x.value), 1 / x.value);
}
/// log(1 + x), exact near 0.
template <Number T>
T log1p(const T& x) {
  return chained(x, std::log1p(x.value), 1 / (1 + x.value));
}

template <Number T>
T sqrt(const T& x) {
  const double value = std::sqrt(x.value);
  return chained(x, value, 0.5 / value);
}
template <Number T>
T tanh(const T& x) {
  const double value = std::tanh(x.value);
  return chained(x, value, 1 - value * value);
}
template <Number T>
T sin(const T& x) {
  return chained(x, std::sin(x.value), std::cos(x.value));
}
template <Number T>
T cos(const T& x) {
  return chained(x, std::cos(x.value), -std::sin(x.value));
}

/// 1 / (1 + exp(-x)), for any x.
template <Number T>
T sigmoid(const T& x) {
  const double e = std::exp(-std::fabs(x.value)), value = x.value < 0 ? e / (1 + e) : 1 / (1 + e);
  return chained(x, value, e / ((1 + e) * (1 + e)));
}
/// log(1 + exp(x)), for any x.
template <Number T>
T softplus(const T& x) {
  const double e = std::exp(-std::fabs(x.value)), rest = std::log1p(e);
  return chained(x, x.value < 0 ? rest : x.value + rest, x.value < 0 ? e / (1 + e) : 1 / (1 + e));
}

/// The slope by an exponent that is a number is 0, whatever the base is.
template <typename A, typename B>
requires Operands<A, B>
auto pow(const A& base, const B& exponent) {
  const double x = value_of(base), p = value_of(exponent), value = std::pow(x, p);
  double by_base = 0, by_exponent = 0;
  if constexpr (std::same_as<A, Dual>) by_base = p == 0 ? 0.0 : p * std::pow(x, p - 1);
  if constexpr (std::same_as<B, Dual>) by_exponent = x == 0 && p > 0 ? 0.0 : value * std::log(x);
  return chained(base, exponent, value, by_base, by_exponent);
}

/// One of the two, with its slope.
template <typename A, typename B>
requires Operands<A, B>
constexpr auto chosen(bool second, const A& a, const B& b) {
  using Result = decltype(chained(a, b, 0, 0, 0));
  return second ? Result(b) : Result(a);
}
template <typename A, typename B>
requires Operands<A, B>
constexpr auto min(const A& a, const B& b) {
  return chosen(value_of(b) < value_of(a) || value_of(b) != value_of(b), a, b);
}
template <typename A, typename B>
requires Operands<A, B>
constexpr auto max(const A& a, const B& b) {
  return chosen(value_of(b) > value_of(a) || value_of(b) != value_of(b), a, b);
}

}  // namespace lockstep::formula
