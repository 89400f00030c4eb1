// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "fuzz/parsers/mutants.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>

extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace lockstep::fuzz {

namespace {

/// What a handler writes if the mutant ends the process.
Input current;
std::string kept_path;

void keep_current() {
  const int file = ::open(kept_path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  if (file < 0) return;
  if (::write(file, current.data(), current.size()) < 0) return;
  ::close(file);
  const std::string text = "the mutant at fault: " + kept_path + "\n";
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

void at_signal(int signal) {
  if (signal == SIGALRM) {
    constexpr std::string_view kText = "a mutant takes too long\n";
    if (::write(STDERR_FILENO, kText.data(), kText.size()) < 0) std::_Exit(1);
  }
  keep_current();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::uint64_t peak_bytes() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
}

}  // namespace

Input mutant(const Input& kept, std::uint64_t seed, std::uint64_t number) {
  std::mt19937_64 engine(seed * 0x9E3779B97F4A7C15ULL + number);
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(engine() % count); };
  constexpr std::array<std::uint8_t, 6> kInteresting{0, 1, 0x7F, 0x80, 0xFE, 0xFF};
  constexpr std::array<int, 6> kChanges{1, 1, 1, 2, 3, 8};
  Input data = kept;
  for (int change = kChanges[below(kChanges.size())]; change > 0 && !data.empty(); --change) {
    const std::size_t at =
        below(3) == 0 ? below(std::min<std::size_t>(data.size(), 600)) : below(data.size());
    const std::size_t size = std::min(std::size_t{1} << below(4), data.size() - at);
    const auto place = data.begin() + static_cast<std::ptrdiff_t>(at);
    const auto piece = [&](std::size_t begin, std::size_t most) {
      const auto first = data.begin() + static_cast<std::ptrdiff_t>(begin);
      return Input(first, first + static_cast<std::ptrdiff_t>(std::min(most, data.size() - begin)));
    };
    switch (below(9)) {
      case 0:
        *place ^= static_cast<std::uint8_t>(1U << below(8));
        break;
      case 1:
        *place = static_cast<std::uint8_t>(below(256));
        break;
      case 2:
        std::fill_n(place, size, kInteresting[below(kInteresting.size())]);
        break;
      case 3: {  // a small change of a number, little-endian
        unsigned carry = below(2) == 0 ? 1 : 16;
        for (std::size_t i = 0; i < size; ++i) {
          carry += place[static_cast<std::ptrdiff_t>(i)];
          place[static_cast<std::ptrdiff_t>(i)] = static_cast<std::uint8_t>(carry);
          carry >>= 8;
        }
        break;
      }
      case 4:
        --*place;
        break;
      case 5: {
        const Input other = piece(below(data.size()), 4 * size);
        std::copy_n(other.begin(), std::min(other.size(), data.size() - at), place);
        break;
      }
      case 6: {
        const Input again = piece(at, 1 + below(40));
        data.insert(place, again.begin(), again.end());
        break;
      }
      case 7:
        data.erase(place, place + static_cast<std::ptrdiff_t>(std::min(1 + below(40), data.size() - at)));
        break;
      default:
        if (below(3) == 0) data.resize(at);
    }
  }
  return data;
}

std::uint64_t run_mutants(const Parser& parser, std::span<const Input> kept, const MutantRun& options) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) std::signal(signal, at_signal);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep_current);
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(options.seconds));
  std::uint64_t number = 0;
  for (; number < options.most && Clock::now() < end; ++number) {
    current = mutant(kept[number % kept.size()], options.seed, number);
    kept_path =
        (std::string(std::getenv("TMPDIR") == nullptr ? "/tmp" : std::getenv("TMPDIR")) + "/mutant-") +
        std::string(parser.name) + "-" + std::to_string(options.seed) + "-" + std::to_string(number);
    ::alarm(kMostSeconds);
    run(parser, current);
    ::alarm(0);
    if (peak_bytes() > kMostBytes) {
      std::fprintf(stderr, "%s takes %llu bytes\n", kept_path.c_str(),
                   static_cast<unsigned long long>(peak_bytes()));
      std::abort();
    }
  }
  return number;
}

}  // namespace lockstep::fuzz
