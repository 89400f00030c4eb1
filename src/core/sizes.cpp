// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/sizes.h"

#include <fmt/format.h>

#include <array>
#include <new>
#include <stdexcept>
#include <utility>

#include "core/error.h"

namespace lockstep {

std::optional<std::int64_t> product_up_to(std::int64_t limit, std::span<const std::int64_t> factors) {
  for (const std::int64_t factor : factors)
    if (factor == 0) return 0;
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (product > limit / factor) return std::nullopt;
    product *= factor;
  }
  return product;
}

std::optional<std::int64_t> product_up_to(std::int64_t limit, std::initializer_list<std::int64_t> factors) {
  return product_up_to(limit, std::span(factors.begin(), factors.size()));
}

double product_in_double(std::span<const std::int64_t> factors) {
  double product = 1;
  for (const std::int64_t factor : factors) product *= static_cast<double>(factor);
  return product;
}

std::string size_text(double bytes) {
  constexpr std::array kUnits{"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  if (bytes >= 1e6) return fmt::format("{:.1e} {}", bytes, kUnits[unit]);
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

namespace {

/// What a device says of memory that it does not have.
bool is_out_of_memory(const Error& error) {
  return error.kind() == ErrorKind::device && error.what_happened().starts_with("out of memory");
}

}  // namespace

void read_into_memory(FunctionRef<std::string()> where, FunctionRef<void()> body) {
  try {
    return body();
  } catch (const Error& error) {
    if (!is_out_of_memory(error)) throw;
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  throw Error(ErrorKind::data, "needs more memory to be read than there is", where(),
              "Read it on a machine with more memory, or make a smaller file of a part of it; a file that "
              "should be small may be damaged, or made to harm.");
}

void allocate_for(std::string_view what, FunctionRef<void()> body, std::string_view where) {
  const auto failed = [&](std::string_view reason, std::string advice) {
    return Error(ErrorKind::device, fmt::format("no memory for {}: {}", what, reason), std::string(where),
                 std::move(advice));
  };
  try {
    body();
  } catch (const Error& error) {
    if (!is_out_of_memory(error)) throw;
    throw failed(error.what_happened(), error.advice());
  } catch (const std::bad_alloc&) {
    throw failed("out of memory", "Make it smaller, use more ranks, or a machine with more memory.");
  } catch (const std::length_error&) {
    throw failed("more than a process can address", "Make it smaller.");
  }
}

}  // namespace lockstep
