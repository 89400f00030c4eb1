// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples as NumPy's arrays: a .npy file for features and one for labels, or both in a .npz, which is a ZIP
// archive of .npy files (APPNOTE.TXT of PKWARE, 4.3 and 4.5.3). Members are stored, not compressed, so that
// parts can be read; their lengths are those of ZIP64 always. Their places are known before the first sample.
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>

#include "core/error.h"
#include "io/npy_format.h"
#include "io/output_file.h"
#include "io/sample_file.h"

namespace lockstep {

namespace {

std::vector<std::int64_t> feature_extents(const SampleFileForm& form) {
  std::vector<std::int64_t> extents{form.samples};
  extents.insert(extents.end(), form.shape.extents().begin(), form.shape.extents().end());
  return extents;
}

std::vector<std::int64_t> label_extents(const SampleFileForm& form) {
  if (form.label_columns == 1) return {form.samples};
  return {form.samples, form.label_columns};
}

std::string feature_header(const SampleFileForm& form) {
  return npy_header(form.type, feature_extents(form));
}
std::string label_header(const SampleFileForm& form) {
  return npy_header(form.labels_are_indices ? DType::i32 : DType::f32, label_extents(form));
}

/// Pieces: features, labels.
EncodedBlock as_bytes(const SampleFileForm& form, const SampleBlock& block) {
  const auto bytes = static_cast<std::size_t>(block.count * form.sample_bytes());
  EncodedBlock encoded{.count = block.count, .pieces = {}, .skipped_filters = {}};
  encoded.pieces.emplace_back(static_cast<const char*>(block.features), bytes);
  encoded.pieces.push_back(label_bytes(form, block));
  return encoded;
}

class SampleNpy final : public SampleWriter {
 public:
  SampleNpy(const std::vector<std::string>& paths, SampleFileForm form) : form_(std::move(form)) {
    for (const std::string& path : paths)
      files_.push_back(std::make_unique<OutputFile>(path, std::vector<std::string>()));
    files_[0]->append(feature_header(form_));
    if (files_.size() > 1) files_[1]->append(label_header(form_));
  }
  EncodedBlock encode(const SampleBlock& block) const override { return as_bytes(form_, block); }
  void write(const EncodedBlock& block) override {
    for (std::size_t i = 0; i < files_.size(); ++i) files_[i]->append(block.pieces[i]);
  }
  void finish() override {
    for (const auto& file : files_) file->publish();
  }

 private:
  SampleFileForm form_;
  std::vector<std::unique_ptr<OutputFile>> files_;
};

/// Little-endian numbers, one after the other.
class Bytes {
 public:
  Bytes& u16(std::uint64_t value) { return add(value, 2); }
  Bytes& u32(std::uint64_t value) { return add(value, 4); }
  Bytes& u64(std::uint64_t value) { return add(value, 8); }
  Bytes& text(const std::string& text) {
    bytes_ += text;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Bytes& add(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xFF);
    return *this;
  }
  std::string bytes_;
};

constexpr std::uint64_t kVersion = 45;            // with ZIP64
constexpr std::uint64_t kDate = 0x21;             // 1 January 1980: equal samples make equal files
constexpr std::uint64_t kElsewhere = 0xFFFFFFFF;  // the number is in the field of ZIP64
constexpr std::uint64_t kUtf8 = 0x0800;           // the name is UTF-8

class SampleNpz final : public SampleWriter {
 public:
  SampleNpz(const std::string& path, SampleFileForm form, const SampleFileOptions& options)
      : form_(std::move(form)), file_(path, {}) {
    add_member(options.features, feature_header(form_),
               static_cast<std::uint64_t>(form_.samples) * static_cast<std::uint64_t>(form_.sample_bytes()));
    if (form_.label_columns > 0) {
      constexpr std::uint64_t kLabelBytes = 4;
      add_member(options.labels, label_header(form_),
                 static_cast<std::uint64_t>(form_.samples * form_.label_columns) * kLabelBytes);
    }
    for (Member& member : members_) put(member, member.header);
  }

  EncodedBlock encode(const SampleBlock& block) const override { return as_bytes(form_, block); }
  void write(const EncodedBlock& block) override {
    for (std::size_t i = 0; i < members_.size(); ++i) put(members_[i], block.pieces[i]);
  }

  void finish() override {
    std::string directory;
    for (const Member& member : members_) {
      write_at(local_header(member), member.at);
      directory += Bytes()
                       .u32(0x02014b50)
                       .u16(kVersion)
                       .text(common(member))
                       .u16(28)  // of ZIP64's field
                       .u16(0)
                       .u16(0)
                       .u16(0)
                       .u32(0)
                       .u32(kElsewhere)
                       .text(member.name)
                       .u16(1)
                       .u16(24)
                       .u64(member.bytes)
                       .u64(member.bytes)
                       .u64(member.at)
                       .bytes();
    }
    const std::uint64_t count = members_.size(), end = end_ + directory.size();
    write_at(directory, end_);
    write_at(Bytes()
                 .u32(0x06064b50)
                 .u64(44)
                 .u16(kVersion)
                 .u16(kVersion)
                 .u32(0)
                 .u32(0)
                 .u64(count)
                 .u64(count)
                 .u64(directory.size())
                 .u64(end_)
                 .u32(0x07064b50)
                 .u32(0)
                 .u64(end)
                 .u32(1)
                 .u32(0x06054b50)
                 .u16(0)
                 .u16(0)
                 .u16(count)
                 .u16(count)
                 .u32(kElsewhere)
                 .u32(kElsewhere)
                 .u16(0)
                 .bytes(),
             end);
    file_.publish();
  }

 private:
  struct Member {
    std::string name, header;
    std::uint64_t at, bytes;  ///< of the local header; of the .npy
    std::uint64_t next;       ///< where the next bytes go
    uLong crc = 0;
  };

  /// What the local header and the directory have in common.
  static std::string common(const Member& member) {
    return Bytes()
        .u16(kVersion)
        .u16(kUtf8)
        .u16(0)
        .u16(0)
        .u16(kDate)
        .u32(member.crc)
        .u32(kElsewhere)
        .u32(kElsewhere)
        .u16(member.name.size())
        .bytes();
  }
  static std::string local_header(const Member& member) {
    return Bytes()
        .u32(0x04034b50)
        .text(common(member))
        .u16(20)
        .text(member.name)
        .u16(1)
        .u16(16)
        .u64(member.bytes)
        .u64(member.bytes)
        .bytes();
  }

  void add_member(const std::string& name, std::string header, std::uint64_t bytes) {
    Member member{.name = name + ".npy", .header = std::move(header), .at = end_, .bytes = 0, .next = 0};
    member.bytes = member.header.size() + bytes;
    member.next = end_ + local_header(member).size();
    end_ = member.next + member.bytes;
    members_.push_back(std::move(member));
  }

  void put(Member& member, const std::string& bytes) {
    member.crc = crc32_z(member.crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    write_at(bytes, member.next);
    member.next += bytes.size();
  }

  void write_at(const std::string& bytes, std::uint64_t at) {
    const int descriptor = file_.seekable();
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t put =
          ::pwrite(descriptor, bytes.data() + done, bytes.size() - done, static_cast<off_t>(at + done));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) throw file_error(ErrorKind::output, "write", file_.path(), errno);
      done += static_cast<std::size_t>(put);
    }
  }

  SampleFileForm form_;
  OutputFile file_;
  std::vector<Member> members_;
  std::uint64_t end_ = 0;  ///< of the members
};

}  // namespace

std::unique_ptr<SampleWriter> make_sample_npy(const std::vector<std::string>& paths, SampleFileForm form) {
  return std::make_unique<SampleNpy>(paths, std::move(form));
}

std::unique_ptr<SampleWriter> make_sample_npz(const std::string& path, SampleFileForm form,
                                              const SampleFileOptions& options) {
  return std::make_unique<SampleNpz>(path, std::move(form), options);
}

}  // namespace lockstep
