// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// IEEE Std 1003.1, pax: "pax Interchange Format" and "ustar Interchange Format"; GNU tar's manual, "Basic Tar
// Format". A header is a block of 512 bytes, followed by the contents in whole blocks:
//
//   0  name 100     100  mode 8       108  uid 8      116  gid 8      124  size 12    136  mtime 12
//   148  checksum 8      156  type 1       157  link name 100         257  magic 6, version 2
//   265  user 32     297  group 32    329  device 16  345  prefix 155
#include "data/tar_index.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "core/error.h"

namespace lockstep {

namespace {

constexpr std::int64_t kBlock = 512;
/// Of a pax header or a long name.
constexpr std::int64_t kMostText = std::int64_t{1} << 20;
/// Headers are read with what follows them: small members need no further read.
constexpr std::size_t kWindowBytes = std::size_t{1} << 16;
constexpr const char* kDamaged = "The archive may be damaged: copy or make it again.";

struct Field {
  std::size_t offset, length;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kPrefix{345, 155};
constexpr std::size_t kType = 156, kMagic = 257;

/// Sequential reads of an archive through a window.
class Window {
 public:
  explicit Window(ByteSource& archive) : archive_(archive), bytes_(archive.max_bytes()) {}

  /// `count` bytes from `offset` on; the caller has checked that they are there.
  std::span<const std::byte> bytes(std::int64_t offset, std::size_t count) {
    if (offset < start_ ||
        offset + static_cast<std::int64_t>(count) > start_ + static_cast<std::int64_t>(kept_.size())) {
      const auto left = static_cast<std::size_t>(bytes_ - offset);
      kept_.resize(std::min(std::max(kWindowBytes, count), left));
      archive_.read(offset, kept_.data(), kept_.size());
      start_ = offset;
    }
    return std::span(kept_).subspan(static_cast<std::size_t>(offset - start_), count);
  }

 private:
  ByteSource& archive_;
  std::vector<std::byte> kept_;
  const std::int64_t bytes_;
  std::int64_t start_ = 0;
};

class TarReader {
 public:
  explicit TarReader(ByteSource& archive)
      : archive_(archive), bytes_(archive.max_bytes()), window_(archive) {}

  void read(FunctionRef<void(const TarMember&)> use) {
    while (next_header()) {
      const char type = static_cast<char>(header_[kType]);
      const std::int64_t start = at_ + kBlock;
      std::int64_t size = number(kSize);
      if (size < 0) fail("has a negative size");
      switch (type) {
        case 'x':
          read_pax(text(start, size));
          break;
        case 'g':  // comments and the like for all members
          text(start, size);
          break;
        case 'L':
          long_name_ = without_zeros(text(start, size));
          break;
        case 'K':  // the name of a link
          text(start, size);
          break;
        case '0':
        case '\0':
        case '7':
          if (pax_size_) size = *pax_size_;
          check_contents(start, size, name());
          use({name(), start, size});
          forget_extensions();
          break;
        case '5':
          size = 0;  // whatever the header says
          forget_extensions();
          break;
        default:
          fail(type == '1' || type == '2' ? fmt::format("'{}' is a link", name())
               : type == 'S'              ? fmt::format("'{}' is stored as a sparse file", name())
                                          : fmt::format("'{}' is no file, but of type '{}'", name(), type),
               "Archive regular files: tar --dereference --hard-dereference.");
      }
      at_ = start + (size + kBlock - 1) / kBlock * kBlock;
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what, const char* advice = kDamaged) const {
    throw Error(ErrorKind::data, what, fmt::format("{}, byte {}", archive_.where(), at_), advice);
  }

  /// Reads the header at at_; false at the end of the archive.
  bool next_header() {
    require_block("the archive is truncated");
    const auto block = window_.bytes(at_, kBlock);
    std::ranges::copy(block, header_.begin());
    if (std::ranges::all_of(block, [](std::byte b) { return b == std::byte{0}; })) {
      check_end();
      return false;
    }
    if (at_ == 0) refuse_compressed();
    if (std::memcmp(header_.data() + kMagic, "ustar", 5) != 0)
      fail(at_ == 0 ? "is no tar archive (of the form ustar, pax or GNU)" : "is no header of a member");
    if (number(kChecksum) != checksum()) fail("the checksum of a header is wrong");
    return true;
  }

  void require_block(const char* what) const {
    if (at_ + kBlock > bytes_) fail(fmt::format("{}: it has {} bytes, and no end", what, bytes_));
  }

  void refuse_compressed() const {
    const auto begins = [&](std::initializer_list<int> start) {
      return std::equal(start.begin(), start.end(), header_.begin(),
                        [](int a, std::byte b) { return a == static_cast<int>(b); });
    };
    if (begins({0x1F, 0x8B}) || begins({0x28, 0xB5, 0x2F, 0xFD}) || begins({'B', 'Z', 'h'}) ||
        begins({0xFD, '7', 'z', 'X', 'Z'}))
      fail("is compressed, so that no sample can be found in it",
           "Uncompress it: images are compressed already.");
  }

  /// Two blocks of zeros end an archive, and nothing but zeros follows.
  void check_end() {
    const std::int64_t end = at_;
    at_ += kBlock;
    require_block("the archive is truncated");
    for (at_ = end; at_ < bytes_;) {
      const auto count = std::min<std::int64_t>(bytes_ - at_, kWindowBytes);
      const auto rest = window_.bytes(at_, static_cast<std::size_t>(count));
      const auto found = std::ranges::find_if(rest, [](std::byte b) { return b != std::byte{0}; });
      at_ += found - rest.begin();
      if (found != rest.end())
        fail("something follows the end of the archive",
             "Archives cannot be joined by cat: name them in a list.");
    }
  }

  /// The sum of all bytes of the header, those of the checksum as spaces.
  std::int64_t checksum() const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < header_.size(); ++i)
      sum += i >= kChecksum.offset && i < kChecksum.offset + kChecksum.length ? ' '
                                                                              : static_cast<int>(header_[i]);
    return sum;
  }

  std::string_view field(const Field& place) const {
    return {reinterpret_cast<const char*>(header_.data()) + place.offset, place.length};
  }

  /// Octal digits between spaces and zeros; or, by GNU, a big-endian number after a byte 0x80.
  std::int64_t number(const Field& place) const {
    std::string_view digits = field(place);
    if (header_[place.offset] == std::byte{0x80}) {
      std::uint64_t value = 0;
      for (const char c : digits.substr(1)) {
        if (value >> 55 != 0) fail("a number in a header is too large");
        value = value << 8 | static_cast<unsigned char>(c);
      }
      return static_cast<std::int64_t>(value);
    }
    const auto first = digits.find_first_not_of(' ');
    digits = digits.substr(first == std::string_view::npos ? digits.size() : first);
    constexpr std::string_view kEnds(" \0", 2);
    const std::string_view rest = digits.substr(std::min(digits.find_first_of(kEnds), digits.size()));
    digits.remove_suffix(rest.size());
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() ||
        rest.find_first_not_of(kEnds) != std::string_view::npos)
      fail("a number in a header is not made of octal digits");
    return value;
  }

  static std::string without_zeros(std::string_view text) {
    return std::string(text.substr(0, text.find('\0')));
  }

  std::string name() const {
    if (pax_path_) return *pax_path_;
    if (long_name_) return *long_name_;
    const std::string own = without_zeros(field(kName));
    // GNU has times where ustar has the prefix.
    const bool is_ustar = header_[kMagic + 5] == std::byte{0};
    const std::string prefix = is_ustar ? without_zeros(field(kPrefix)) : "";
    return prefix.empty() ? own : prefix + "/" + own;
  }

  void check_contents(std::int64_t start, std::int64_t size, const std::string& what) const {
    if (size > bytes_ - start)
      fail(fmt::format("the archive is truncated: '{}' has {} bytes, but only {} follow", what, size,
                       bytes_ - start));
  }

  std::string text(std::int64_t start, std::int64_t size) {
    if (size > kMostText) fail(fmt::format("an extended header claims {} bytes", size));
    check_contents(start, size, "an extended header");
    const auto bytes = window_.bytes(start, static_cast<std::size_t>(size));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  /// Records "LENGTH KEY=VALUE\n"; the length counts all of it.
  void read_pax(std::string_view records) {
    while (!records.empty()) {
      std::size_t length = 0;
      const auto [end, error] = std::from_chars(records.data(), records.data() + records.size(), length);
      const auto begin = static_cast<std::size_t>(end - records.data()) + 1;
      if (error != std::errc() || length > records.size() || begin >= length || *end != ' ' ||
          records[length - 1] != '\n')
        fail("a pax header is damaged");
      const std::string_view record = records.substr(begin, length - begin - 1);
      const auto equals = record.find('=');
      if (equals == std::string_view::npos) fail("a pax header is damaged");
      const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
      if (key == "path") pax_path_ = value;
      if (key == "size") {
        std::int64_t size = -1;
        const auto [last, wrong] = std::from_chars(value.data(), value.data() + value.size(), size);
        if (wrong != std::errc() || last != value.data() + value.size() || size < 0)
          fail("a pax header is damaged");
        pax_size_ = size;
      }
      if (key.starts_with("GNU.sparse."))
        fail("a member is stored as a sparse file", "Archive without --sparse.");
      records.remove_prefix(length);
    }
  }

  void forget_extensions() {
    long_name_.reset();
    pax_path_.reset();
    pax_size_.reset();
  }

  ByteSource& archive_;
  const std::int64_t bytes_;  ///< of the archive
  Window window_;
  std::int64_t at_ = 0;  ///< of the header
  std::array<std::byte, kBlock> header_{};
  // For the next member.
  std::optional<std::string> long_name_, pax_path_;
  std::optional<std::int64_t> pax_size_;
};

}  // namespace

void read_tar(ByteSource& archive, FunctionRef<void(const TarMember&)> use) { TarReader(archive).read(use); }

std::string tar_name_before(ByteSource& archive, std::int64_t offset) {
  std::array<std::byte, kBlock> header{};
  if (offset < kBlock || offset > archive.max_bytes()) return {};
  archive.read(offset - kBlock, header.data(), header.size());
  const std::string_view name(reinterpret_cast<const char*>(header.data()), kName.length);
  return std::string(name.substr(0, name.find('\0')));
}

}  // namespace lockstep
