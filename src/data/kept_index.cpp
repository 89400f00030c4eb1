// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/kept_index.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "io/atomic_file.h"
#include "io/byte_source.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "lockstep kept 1\n";
constexpr std::string_view kEnding = ".index";
/// Smaller sets are read again in no time.
constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;
/// Pieces of a file that its hash is made of, and their bytes.
constexpr std::int64_t kPieces = 4, kPieceBytes = 4096;

thread_local IndexFolder* living = nullptr;

}  // namespace

IndexFolder::IndexFolder(std::string path, bool writes) : path_(std::move(path)), writes_(writes) {
  LOCKSTEP_CHECK(living == nullptr);
  if (!path_.empty()) living = this;
}

IndexFolder::~IndexFolder() {
  if (living == this) living = nullptr;
}

IndexFolder* IndexFolder::current() { return living; }

void IndexFolder::remove_unused() const {
  if (!writes_ || path_.empty()) return;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(kEnding) && std::ranges::find(used_, name) == used_.end())
      fs::remove(entry.path(), failed);
  }
}

void IndexWriter::number(std::int64_t value) {
  // Zigzag: the sign is the lowest bit. Seven bits a byte, the lowest first.
  auto rest = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  for (; rest >= 0x80; rest >>= 7) bytes_ += static_cast<char>(rest | 0x80);
  bytes_ += static_cast<char>(rest);
}

void IndexWriter::text(std::string_view value) {
  number(std::ssize(value));
  bytes_ += value;
}

void IndexWriter::numbers(const std::vector<std::int64_t>& values) {
  number(std::ssize(values));
  std::int64_t last = 0;
  for (const std::int64_t value : values) number(value - std::exchange(last, value));
}

std::int64_t IndexReader::number() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  good_ = false;
  return 0;
}

std::string IndexReader::text() {
  const std::int64_t size = number();
  if (size < 0 || size > std::ssize(rest_)) {
    good_ = false;
    return {};
  }
  std::string value(rest_.substr(0, static_cast<std::size_t>(size)));
  rest_.remove_prefix(value.size());
  return value;
}

std::vector<std::int64_t> IndexReader::numbers() {
  const std::int64_t count = number();
  if (count < 0 || count > std::ssize(rest_)) {  // each takes a byte at least
    good_ = false;
    return {};
  }
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  std::int64_t last = 0;
  for (std::int64_t& value : values) value = last += number();
  return values;
}

KeptIndex::KeptIndex(std::string_view kind, std::string_view options, const std::vector<std::string>& paths) {
  IndexFolder* const folder = IndexFolder::current();
  if (folder == nullptr) return;
  paths_ = paths;
  files_.resize(paths_.size());
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const std::optional<State> state = state_of(paths_[i]);
    if (!state) return;  // the reader says what is wrong with the file
    files_[i].state = *state;
    bytes += state->bytes;
  }
  if (bytes < kLeastBytes) return;
  Digest digest;
  digest.add(options);
  for (const std::string& path : paths_)
    digest.add(std::string_view(fs::absolute(path).lexically_normal().string()));
  const std::string name = fmt::format("{}-{}{}", kind, digest.hex().substr(0, 16), kEnding);
  folder->used_.push_back(name);
  file_ = folder->path() + "/" + name;
  writes_ = folder->writes();
  read();
}

std::optional<KeptIndex::State> KeptIndex::state_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  State state{.bytes = status.st_size,
              .changed = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
  try {
    Hash64 hash;
    std::string piece(kPieceBytes, '\0');
    const std::shared_ptr<ByteSource> source = file_bytes(path);
    for (std::int64_t i = 0; i < kPieces; ++i) {
      const std::int64_t at = std::max<std::int64_t>(0, state.bytes - kPieceBytes) / (kPieces - 1) * i;
      hash.add(piece.data(), source->read_some(at, piece.data(), piece.size()));
    }
    state.hash = static_cast<std::int64_t>(hash.value());
  } catch (const Error&) {
    return std::nullopt;
  }
  return state;
}

void KeptIndex::read() {
  std::error_code failed;
  if (!fs::exists(file_, failed)) return;
  std::string whole;
  try {
    whole = read_whole_file(file_, ErrorKind::data);
  } catch (const Error& error) {
    log_debug("{}", message_of(error));
    return;
  }
  std::string_view rest = whole;
  std::uint64_t hash = 0;
  if (!rest.starts_with(kMagic) || rest.size() < kMagic.size() + sizeof hash) return;
  rest.remove_prefix(kMagic.size());
  std::memcpy(&hash, rest.data(), sizeof hash);
  rest.remove_prefix(sizeof hash);
  if (hash64(rest) != hash) return;
  IndexReader reader(rest);
  if (reader.number() != std::ssize(files_)) return;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const State state{reader.number(), reader.number(), reader.number()};
    files_[i].kept = reader.text();
    files_[i].same = state == files_[i].state;
    if (!files_[i].same && changed_.empty()) changed_ = paths_[i];
  }
  all_kept_ = reader.text();
  LOCKSTEP_CHECK(reader.ended(), "an index that its hash does not describe");
  has_all_ = changed_.empty();
  if (!changed_.empty())
    log_info("{} has changed since the run kept what it found in it, which is found again", changed_);
}

std::optional<std::string_view> KeptIndex::of_file(std::size_t i) const {
  if (file_.empty() || !files_[i].same || files_[i].kept.empty()) return std::nullopt;
  return files_[i].kept;
}

std::optional<std::string_view> KeptIndex::of_all() const {
  if (!has_all_ || all_kept_.empty()) return std::nullopt;
  return all_kept_;
}

void KeptIndex::keep() {
  if (file_.empty() || !writes_) return;
  if (!all_now_ && std::ranges::none_of(files_, [](const File& file) { return file.now.has_value(); }))
    return;
  IndexWriter writer;
  writer.number(std::ssize(files_));
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (state_of(paths_[i]) != files_[i].state) return;
    for (const std::int64_t value : {files_[i].state.bytes, files_[i].state.changed, files_[i].state.hash})
      writer.number(value);
    writer.text(files_[i].now ? *files_[i].now : files_[i].same ? files_[i].kept : std::string());
  }
  writer.text(all_now_ ? *all_now_ : has_all_ ? all_kept_ : std::string());
  const std::uint64_t hash = hash64(writer.bytes());
  std::string whole(kMagic);
  whole.append(reinterpret_cast<const char*>(&hash), sizeof hash);
  try {
    std::error_code failed;
    fs::create_directory(fs::path(file_).parent_path(), failed);
    write_file_atomically(file_, whole + writer.bytes());
  } catch (const Error& error) {
    log_warning("{}; the next job of this run reads its data files again", error.what());
  }
}

}  // namespace lockstep
