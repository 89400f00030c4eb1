// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_chunk.h"

#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

namespace lockstep {

namespace {

constexpr std::size_t kChecksumBytes = 4;

Error damaged(std::string what, const std::string& where) {
  return Error(ErrorKind::data, "a chunk is damaged: " + std::move(what), where,
               "Copy or make the file again.");
}

/// Fletcher's checksum of big-endian words of 16 bits, as HDF5 has it: an odd last byte is the high one.
std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  std::uint64_t one = 0, two = 0;
  const std::size_t words = bytes.size() / 2;
  for (std::size_t i = 0; i < words;) {
    // Neither sum exceeds 64 bits in 4096 words.
    for (const std::size_t last = std::min(words, i + 4096); i < last; ++i) {
      one += std::to_integer<std::uint64_t>(bytes[2 * i]) << 8 |
             std::to_integer<std::uint64_t>(bytes[2 * i + 1]);
      two += one;
    }
    one %= 65535;
    two %= 65535;
  }
  if (bytes.size() % 2 != 0) {
    one = (one + (std::to_integer<std::uint64_t>(bytes.back()) << 8)) % 65535;
    two = (two + one) % 65535;
  }
  return static_cast<std::uint32_t>(two << 16 | one);
}

/// HDF5 folds its sums, so that 65535 stands for 0, too.
bool same_checksum(std::uint32_t a, std::uint32_t b) {
  const auto half = [](std::uint32_t value) { return (value & 0xFFFFU) % 65535U; };
  return half(a) == half(b) && half(a >> 16) == half(b >> 16);
}

std::uint32_t little_endian(const std::byte* bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < kChecksumBytes; ++i)
    value |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  return value;
}

/// Checks the checksum at the end and removes it. Versions of HDF5 before 1.6.3 wrote the bytes of each half
/// in the other order, which HDF5 accepts, too.
std::span<std::byte> without_checksum(std::span<std::byte> bytes, const std::string& where) {
  if (bytes.size() < kChecksumBytes) throw damaged("it has no room for its checksum", where);
  const std::uint32_t written = little_endian(bytes.data() + bytes.size() - kChecksumBytes);
  const std::uint32_t swapped = (written & 0x00FF00FFU) << 8 | (written >> 8 & 0x00FF00FFU);
  bytes = bytes.first(bytes.size() - kChecksumBytes);
  const std::uint32_t computed = fletcher32(bytes);
  if (!same_checksum(computed, written) && !same_checksum(computed, swapped))
    throw damaged("its checksum is wrong", where);
  return bytes;
}

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* decompressor) const { libdeflate_free_decompressor(decompressor); }
};

/// Inflates all of `from` and returns the number of bytes. Chunks lie in memory as a whole, for which
/// libdeflate is about twice as fast as zlib.
std::size_t inflate_all(std::span<const std::byte> from, std::span<std::byte> to, const std::string& where) {
  thread_local const std::unique_ptr<libdeflate_decompressor, FreeDecompressor> decompressor(
      libdeflate_alloc_decompressor());
  if (decompressor == nullptr) throw std::bad_alloc();
  std::size_t size = 0;
  if (libdeflate_zlib_decompress(decompressor.get(), from.data(), from.size(), to.data(), to.size(), &size) !=
      LIBDEFLATE_SUCCESS)
    throw damaged("gzip cannot decompress it", where);
  return size;
}

/// out[i][j] = in[j][i] for values of `size` bytes; the bytes of an incomplete last value stay.
void unshuffle(std::span<const std::byte> in, std::span<std::byte> out, std::size_t size) {
  const std::size_t values = in.size() / size;
  for (std::size_t byte = 0; byte < size; ++byte) {
    const std::byte* const from = in.data() + byte * values;
    for (std::size_t i = 0; i < values; ++i) out[i * size + byte] = from[i];
  }
  const std::size_t done = values * size;
  std::memcpy(out.data() + done, in.data() + done, in.size() - done);
}

/// The reverse.
std::string shuffled(std::string_view in, std::size_t size) {
  std::string out(in);
  const std::size_t values = in.size() / size;
  for (std::size_t byte = 0; byte < size; ++byte)
    for (std::size_t i = 0; i < values; ++i) out[byte * values + i] = in[i * size + byte];
  return out;
}

/// Nothing if the result is not smaller.
std::optional<std::string> deflated(std::string_view in, int level) {
  uLongf size = compressBound(in.size());
  std::string out(size, '\0');
  const int result = compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                               reinterpret_cast<const Bytef*>(in.data()), in.size(), level);
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  LOCKSTEP_CHECK(result == Z_OK, "zlib: {}", result);
  if (size >= in.size()) return std::nullopt;
  out.resize(size);
  return out;
}

}  // namespace

std::optional<ChunkFilters> ChunkFilters::of(hid_t creation, const Hdf5Context& context) {
  ChunkFilters found;
  const int count = hdf5_checked(H5Pget_nfilters(creation), context, "read the filters");
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    std::array<unsigned, 8> values{};
    std::size_t num_values = values.size();
    const H5Z_filter_t filter = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &num_values,
                                               values.data(), 0, nullptr, &config);
    switch (filter) {
      case H5Z_FILTER_DEFLATE:
        found.filters_.push_back({Filter::Kind::deflate, 1});
        break;
      case H5Z_FILTER_SHUFFLE:
        if (num_values < 1 || values[0] == 0) return std::nullopt;
        found.filters_.push_back({Filter::Kind::shuffle, values[0]});
        break;
      case H5Z_FILTER_FLETCHER32:
        found.filters_.push_back({Filter::Kind::fletcher32, 1});
        break;
      default:
        H5Eclear2(H5E_DEFAULT);
        return std::nullopt;
    }
  }
  return found;
}

unsigned ChunkFilters::encode(std::span<const std::byte> chunk, int level, std::string& out) const {
  out.assign(reinterpret_cast<const char*>(chunk.data()), chunk.size());
  unsigned skipped = 0;
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    switch (filters_[i].kind) {
      case Filter::Kind::shuffle:
        out = shuffled(out, filters_[i].element_bytes);
        break;
      case Filter::Kind::deflate:
        if (std::optional<std::string> packed = deflated(out, level))
          out = std::move(*packed);
        else
          skipped |= 1U << i;
        break;
      case Filter::Kind::fletcher32: {
        const std::uint32_t sum = fletcher32(std::as_bytes(std::span(out)));
        for (std::size_t byte = 0; byte < kChecksumBytes; ++byte)
          out += static_cast<char>(sum >> (8 * byte) & 0xFFU);
        break;
      }
    }
  }
  return skipped;
}

void ChunkFilters::decode(std::vector<std::byte>& stored, unsigned skipped, std::span<std::byte> out,
                          std::vector<std::byte>& scratch, const std::string& where) const {
  const auto applied = [&](std::size_t i) { return (skipped >> i & 1U) == 0; };
  const std::size_t most = out.size() + kChecksumBytes * filters_.size();  // with checksums below others
  std::vector<std::byte>* other = &scratch;
  std::span<std::byte> now(stored);
  for (std::size_t i = filters_.size(); i-- > 0;) {
    if (!applied(i)) continue;
    if (filters_[i].kind == Filter::Kind::fletcher32) {
      now = without_checksum(now, where);
      continue;
    }
    bool is_last = true;
    for (std::size_t below = 0; below < i; ++below) is_last = is_last && !applied(below);
    std::span<std::byte> next = out;
    if (!is_last) {
      other->resize(most);
      next = *other;
      other = other == &scratch ? &stored : &scratch;
    }
    if (filters_[i].kind == Filter::Kind::deflate) {
      next = next.first(inflate_all(now, next, where));
    } else {
      if (now.size() > next.size()) throw damaged("it is too long", where);
      next = next.first(now.size());
      unshuffle(now, next, filters_[i].element_bytes);
    }
    now = next;
  }
  if (now.size() != out.size())
    throw damaged(fmt::format("it has {} bytes, not {}", now.size(), out.size()), where);
  if (now.data() != out.data()) std::memcpy(out.data(), now.data(), out.size());
}

}  // namespace lockstep
