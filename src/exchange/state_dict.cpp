// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "exchange/state_dict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "core/error.h"
#include "data/readers/zip_directory.h"
#include "exchange/pickle.h"
#include "io/input_budget.h"

namespace lockstep {

namespace {

using Kind = PickleValue::Kind;

constexpr std::int64_t kMostPickleBytes = 256LL << 20;
constexpr int kMostDepth = 8;
constexpr std::size_t kMostNameBytes = 4096;

constexpr std::pair<std::string_view, DType> kStorages[] = {
    {"torch.FloatStorage", DType::f32}, {"torch.DoubleStorage", DType::f64},
    {"torch.HalfStorage", DType::f16},  {"torch.BFloat16Storage", DType::bf16},
    {"torch.IntStorage", DType::i32},   {"torch.LongStorage", DType::i64},
    {"torch.ShortStorage", DType::i16}, {"torch.CharStorage", DType::i8},
    {"torch.ByteStorage", DType::u8}};

std::string all_of(ByteSource& source, std::int64_t bytes) {
  std::string text(static_cast<std::size_t>(bytes), '\0');
  source.read(0, text.data(), text.size());
  return text;
}

class StateDict {
 public:
  explicit StateDict(const std::string& path)
      : path_(path),
        bytes_(bytes_of(path)),
        budget_(path, static_cast<std::uint64_t>(bytes_->max_bytes())),
        zip_(bytes_) {
    for (const std::string_view name : zip_.names())
      if (name == "data.pkl" || name.ends_with("/data.pkl")) root_ = name.substr(0, name.size() - 8);
    if (!zip_.has(root_ + "data.pkl")) fail("it has no data.pkl; older files of PyTorch must be saved again");
    if (zip_.has(root_ + "byteorder") && member("byteorder", 16) != "little")
      fail("its numbers are big-endian");
  }

  ForeignFile tensors() {
    const std::string bytes = member("data.pkl", kMostPickleBytes);
    const Pickle pickle(bytes, budget_, path_);
    const PickleValue* root = &pickle.root();
    if (root->kind == Kind::foreign) fail(fmt::format("it names {}", root->text));
    if (root->kind != Kind::dict) fail("it is not a dict of tensors");
    if (const auto [key, inner] = state_in(*root); inner != nullptr) {
      file_.metadata.emplace_back(
          "part", fmt::format("'{}' of the file is read; the rest of the checkpoint is left out", key));
      root = inner;
    } else if (!pickle.foreign_name().empty()) {
      fail(fmt::format("it names {}", pickle.foreign_name()));
    }
    add(*root, "", 0);
    strip_prefixes();
    return std::move(file_);
  }

 private:
  static std::shared_ptr<ByteSource> bytes_of(const std::string& path) {
    std::shared_ptr<ByteSource> bytes = file_bytes(path);
    unsigned char first = 0;
    if (bytes->max_bytes() > 0) bytes->read(0, &first, 1);
    if (first == 0x80)  // a pickle, and not a ZIP file
      throw Error(ErrorKind::data, "has the format of PyTorch before 1.6", path,
                  "Write it again: torch.save(torch.load(file, map_location=\"cpu\"), new_file).");
    return bytes;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::data, fmt::format("is not a state dict that can be read: {}", what), path_,
                "Write it with torch.save(model.state_dict(), file).");
  }

  /// The state dict in a checkpoint of a training program: Lightning's, and what most scripts write.
  static std::pair<std::string_view, const PickleValue*> state_in(const PickleValue& root) {
    for (const std::string_view name : {"state_dict", "model_state_dict", "model"})
      for (const auto& [key, value] : root.pairs)
        if (key->kind == Kind::text && key->text == name && value->kind == Kind::dict) return {name, value};
    return {};
  }

  /// Names that all begin alike with what a wrapper adds lose that: DataParallel, LightningModule, compile.
  void strip_prefixes() {
    const auto common = [&](std::string_view prefix) {
      return !file_.tensors.empty() && std::ranges::all_of(file_.tensors, [&](const ForeignTensor& tensor) {
        return tensor.name.starts_with(prefix);
      });
    };
    std::string stripped;
    for (bool again = true; again;) {
      again = false;
      for (const std::string_view prefix : {"module.", "model.", "_orig_mod."}) {
        if (!common(prefix)) continue;
        for (ForeignTensor& tensor : file_.tensors) tensor.name.erase(0, prefix.size());
        stripped += prefix;
        again = true;
      }
    }
    if (!stripped.empty())
      file_.metadata.emplace_back("prefix",
                                  fmt::format("all names begin with '{}', which is left out", stripped));
  }

  std::string member(const std::string& name, std::int64_t most) {
    const auto source = zip_.open(root_ + name);
    if (source->max_bytes() > most) fail(fmt::format("{} may have {} bytes", name, source->max_bytes()));
    const std::int64_t bytes = exact_bytes(*source);
    budget_.take(static_cast<std::uint64_t>(bytes));
    return all_of(*source, bytes);
  }

  void add(const PickleValue& dict, const std::string& prefix, int depth) {
    if (depth > kMostDepth)
      fail(fmt::format("its dicts are nested too deeply, in more than {} levels", kMostDepth));
    for (const auto& [key, value] : dict.pairs) {
      budget_.visit();
      if (key->kind != Kind::text) continue;
      const std::size_t name_bytes = prefix.size() + key->text.size();
      if (name_bytes > kMostNameBytes)
        fail(fmt::format("a name has {} bytes, more than {}", name_bytes, kMostNameBytes));
      if (value->kind == Kind::foreign) fail(fmt::format("it names {}", value->text));
      if (value->kind == Kind::dict) add(*value, prefix + key->text + ".", depth + 1);
      if (value->kind == Kind::tensor) file_.tensors.push_back(tensor(prefix + key->text, *value));
    }
  }

  std::vector<std::int64_t> integers(const PickleValue& tuple, const std::string& name) const {
    if (tuple.kind != Kind::tuple) fail(fmt::format("the shape of {} is not a tuple of numbers", name));
    std::vector<std::int64_t> numbers;
    for (const PickleValue* const item : tuple.items) {
      if (item->kind != Kind::integer || item->integer < 0)
        fail(fmt::format("the shape of {} is wrong", name));
      numbers.push_back(item->integer);
    }
    return numbers;
  }

  /// The bytes of a storage, which several tensors may share.
  const std::string& storage(const PickleValue& described, std::size_t size) {
    const std::string& key = described.items[2]->text;
    const auto known = storages_.find(key);
    if (known != storages_.end()) return known->second;
    const std::string name = fmt::format("{}data/{}", root_, key);
    if (!zip_.has(name)) fail(fmt::format("the storage {} is missing", name));
    const auto source = zip_.open(name);
    std::int64_t bytes = 0;
    if (described.items[4]->integer < 0 ||
        __builtin_mul_overflow(described.items[4]->integer, static_cast<std::int64_t>(size), &bytes) ||
        bytes > source->max_bytes())
      fail(fmt::format("the storage {} is shorter than it should be", name));
    budget_.take(static_cast<std::uint64_t>(bytes));
    return storages_[key] = all_of(*source, bytes);
  }

  ForeignTensor tensor(const std::string& name, const PickleValue& value) {
    const PickleValue& described = *value.items[0];
    const auto type =
        std::ranges::find(kStorages, described.items[1]->text, &std::pair<std::string_view, DType>::first);
    if (type == std::end(kStorages)) fail(fmt::format("it names {} for {}", described.items[1]->text, name));
    ForeignTensor result{name, type->second, integers(*value.items[2], name), {}};
    check_extents(result, path_);
    const std::vector<std::int64_t> strides = integers(*value.items[3], name);
    const std::size_t size = size_in_bytes(result.dtype);
    const std::string& bytes = storage(described, size);
    const auto stored = static_cast<std::int64_t>(bytes.size() / size);
    const std::int64_t offset = value.items[1]->kind == Kind::integer ? value.items[1]->integer : -1;
    std::int64_t count = 1, end = offset;
    bool fits = strides.size() == result.extents.size() && offset >= 0;
    for (std::size_t i = 0; fits && i < strides.size(); ++i) {
      std::int64_t span = 0;
      fits = !__builtin_mul_overflow(count, result.extents[i], &count) &&
             !__builtin_mul_overflow(strides[i], std::max<std::int64_t>(result.extents[i] - 1, 0), &span) &&
             !__builtin_add_overflow(end, span, &end);
    }
    // Repeated elements (a stride of 0) would let a small file ask for any amount of memory.
    if (!fits || count > stored || (count > 0 && end >= stored))
      fail(fmt::format("{} lies outside of its storage of {} numbers", name, stored));
    budget_.take(static_cast<std::uint64_t>(count) * size + sizeof result + name.size());
    result.bytes.resize(static_cast<std::size_t>(count) * size);
    copy(result, strides, bytes.data() + static_cast<std::size_t>(offset) * size, size);
    return result;
  }

  static void copy(ForeignTensor& to, const std::vector<std::int64_t>& strides, const char* from,
                   std::size_t size) {
    std::vector<std::int64_t> place(strides.size(), 0);
    std::int64_t source = 0;
    for (std::size_t i = 0; i < to.bytes.size(); i += size) {
      std::memcpy(to.bytes.data() + i, from + static_cast<std::size_t>(source) * size, size);
      for (std::size_t axis = strides.size(); axis-- > 0;) {
        source += strides[axis];
        if (++place[axis] < to.extents[axis]) break;
        source -= strides[axis] * to.extents[axis];
        place[axis] = 0;
      }
    }
  }

  const std::string& path_;
  const std::shared_ptr<ByteSource> bytes_;
  InputBudget budget_;
  ZipDirectory zip_;
  std::string root_;
  std::map<std::string, std::string> storages_;
  ForeignFile file_;
};

}  // namespace

ForeignFile read_state_dict(const std::string& path) { return StateDict(path).tensors(); }

}  // namespace lockstep
