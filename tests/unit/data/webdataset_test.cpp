// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Tar archives and the reader of WebDataset's layout, compared with Python's tarfile
// (tests/vectors/make_webdataset_vectors.py).
#include <fcntl.h>
#include <sys/stat.h>

#include "data/readers/webdataset_index.h"
#include "data/tar_index.h"
#include "io/byte_source.h"
#include "support/test_folders.h"
#include "unit/data/image_vectors.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string archive(const std::string& kind) {
  const Bytes bytes = Hdf5Vectors(test_vectors("webdataset.h5")).read<std::uint8_t>(kind, H5T_NATIVE_UINT8);
  return {bytes.begin(), bytes.end()};
}

struct Member {
  std::string name;
  std::int64_t offset, size;
  bool operator==(const Member&) const = default;
};
void PrintTo(const Member& member, std::ostream* out) {
  *out << member.name << " " << member.offset << " " << member.size;
}

/// What tarfile found.
std::vector<Member> members(const std::string& kind) {
  std::vector<Member> all;
  for (const std::string& line : Hdf5Vectors(test_vectors("webdataset.h5")).lines("members")) {
    std::istringstream words(line);
    std::string of;
    Member member{};
    words >> of >> member.offset >> member.size >> member.name;
    if (of == kind) all.push_back(member);
  }
  return all;
}

std::vector<Member> found_in(ByteSource& bytes) {
  std::vector<Member> all;
  read_tar(bytes, [&](const TarMember& member) { all.push_back({member.name, member.offset, member.size}); });
  return all;
}

class TarTest : public FolderTest {
 protected:
  std::vector<Member> found(const std::string& bytes) const {
    write("x.tar", bytes);
    return found_in(*file_bytes(path("x.tar")));
  }
  Error error(const std::string& bytes) const {
    return error_of([&] { found(bytes); });
  }
};

/// The checksum of the header at `at`, written anew.
void sign(std::string& bytes, std::size_t at) {
  unsigned sum = 8 * ' ';
  for (std::size_t i = 0; i < 512; ++i)
    if (i < 148 || i >= 156) sum += static_cast<unsigned char>(bytes[at + i]);
  bytes.replace(at + 148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
}

TEST_F(TarTest, MembersAreThoseOfPythonsTarfile) {
  for (const std::string kind : {"ustar", "pax", "gnu"}) {
    EXPECT_EQ(members(kind).size(), 14U);
    EXPECT_EQ(found(archive(kind)), members(kind)) << kind;
    EXPECT_EQ(tar_name_before(*file_bytes(path("x.tar")), members(kind)[0].offset), members(kind)[0].name);
  }
}

TEST_F(TarTest, EveryTruncationIsRefused) {
  for (const std::string kind : {"ustar", "pax", "gnu"}) {
    const std::string whole = archive(kind);
    const std::size_t end = whole.find_last_not_of('\0') / 512 * 512 + 512;  // of the last contents
    write("x.tar", whole);
    const auto file = file_bytes(path("x.tar"));
    for (std::size_t length = 0; length < end + 1024; ++length) {
      const std::size_t in_block = (length + 1) % 512;
      if (in_block > 2 && length % 41 != 0) continue;
      const auto part = part_of_bytes(file, 0, static_cast<std::int64_t>(length), "a/b");
      const Error error = error_of([&] { found_in(*part); });
      ASSERT_EQ(error.kind(), ErrorKind::data) << kind << length;
      ASSERT_THAT(error.what(), ::testing::ContainsRegex("a/b, byte [0-9]+: the archive is truncated"));
    }
    EXPECT_EQ(found_in(*part_of_bytes(file, 0, static_cast<std::int64_t>(end) + 1024, "a/b")), members(kind));
  }
}

TEST_F(TarTest, EveryChangedByteOfAHeaderIsFound) {
  const std::string whole = archive("ustar");
  for (std::size_t at = 0; at < 500; at += at < 148 ? 11 : at < 160 ? 1 : 17) {
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 0x11);
    EXPECT_EQ(error(bad).where(), path("x.tar") + ", byte 0") << at;
  }
}

TEST_F(TarTest, LargeSizesAreNumbersOf256) {
  const std::string whole = archive("gnu");
  std::string big = whole;
  const auto first = static_cast<std::size_t>(members("gnu")[0].offset) - 512;
  big.replace(first + 124, 12,
              std::string("\x80\0\0\0\0\0\0\0\0\0\0", 11) + static_cast<char>(members("gnu")[0].size & 0xFF));
  big[first + 124 + 10] = static_cast<char>(members("gnu")[0].size >> 8);
  sign(big, first);
  EXPECT_EQ(found(big), members("gnu"));
  big[first + 124 + 3] = 1;
  sign(big, first);
  EXPECT_THAT(error(big).what_happened(), HasSubstr("a number in a header is too large"));
  big[first + 124 + 3] = 0;
  big[first + 124 + 6] = 1;
  sign(big, first);
  EXPECT_THAT(error(big).what_happened(), HasSubstr("the archive is truncated: 's/0001.png' has 1099511"));
}

TEST_F(TarTest, OtherMembersAndFilesAreNamed) {
  std::string bad = archive("ustar");
  const std::string whole = bad;
  const auto at = static_cast<std::size_t>(members("ustar")[1].offset) - 512;
  const std::string where = path("x.tar") + ", byte " + std::to_string(at);
  for (const auto& [type, what] : {std::pair{'2', "'s/0001.cls' is a link"},
                                   {'1', "is a link"},
                                   {'S', "a sparse file"},
                                   {'3', "is no file, but of type '3'"}}) {
    bad[at + 156] = type;
    sign(bad, at);
    expect_data_error([&] { found(bad); }, where, what);
  }
  bad = whole;
  bad.replace(at + 124, 11, "00000000x12");
  sign(bad, at);
  expect_data_error([&] { found(bad); }, where, "is not made of octal digits");
  expect_data_error([&] { found(whole + whole); }, path("x.tar") + ", byte " + std::to_string(whole.size()),
                    "something follows the end");
  expect_data_error([&] { found("\x1F\x8B" + whole); }, path("x.tar") + ", byte 0", "is compressed");
  expect_data_error([&] { found(std::string(1024, 'a')); }, path("x.tar") + ", byte 0", "is no tar archive");
  expect_data_error([&] { found(""); }, path("x.tar") + ", byte 0",
                    "the archive is truncated: it has 0 bytes");
}

TEST_F(TarTest, DamagedPaxHeadersAreFound) {
  const std::string whole = archive("pax");
  const auto at = whole.find("path=a-folder");
  ASSERT_NE(at, std::string::npos);
  for (const std::string digits : {"999", "0  ", "-12", "x12", "12x"}) {
    std::string bad = whole;
    bad.replace(at - 4, 3, digits);
    EXPECT_THAT(error(bad).what_happened(), HasSubstr("a pax header is damaged")) << digits;
  }
  std::string sparse = whole;
  sparse.replace(at, 13, "GNU.sparse.x=");
  EXPECT_THAT(error(sparse).what_happened(), HasSubstr("sparse"));
}

class WebdatasetTest : public FolderTest {
 protected:
  WebdatasetTest() {
    for (const std::string kind : {"ustar", "pax", "gnu"}) write(kind + ".tar", archive(kind));
  }
  std::unique_ptr<ReaderDataset> open(Options options = {}) const {
    if (std::ranges::find(options, "path", &Options::value_type::first) == options.end())
      options.emplace_back("path", "pax.tar");
    if (std::ranges::find(options, "size", &Options::value_type::first) == options.end())
      options.emplace_back("size", "[21, 18]");
    return open_dataset("webdataset", params_for("webdataset", options), folder_);
  }
  /// An archive of small members in the format ustar.
  static std::string tar(const std::vector<std::pair<std::string, std::string>>& contents) {
    std::string all;
    for (const auto& [name, text] : contents) {
      std::string header(512, '\0');
      header.replace(0, name.size(), name);
      header.replace(124, 11, fmt::format("{:011o}", text.size()));
      header.replace(257, 8,
                     std::string("ustar\0"
                                 "00",
                                 8));
      header[156] = '0';
      sign(header, 0);
      all += header + text + std::string((512 - text.size() % 512) % 512, '\0');
    }
    return all + std::string(1024, '\0');
  }
  static std::string image(const std::string& name) {
    const Bytes file = picture(name).file;
    return {file.begin(), file.end()};
  }
};

TEST_F(WebdatasetTest, SamplesOfAllFormats) {
  for (const std::string kind : {"ustar", "pax", "gnu"}) {
    const auto data = open({{"path", kind + ".tar"}});
    EXPECT_EQ(data->size(), 4);
    EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(2, 0, 7, 1));
    for (const auto& [sample, name] :
         {std::pair<std::int64_t, const char*>{0, "rgb.png"}, {1, "grey.png"}, {3, "palette.png"}}) {
      const Bytes pixels = picture(name).pixels;
      EXPECT_EQ(features_of(*data, {sample}), (std::vector<float>{pixels.begin(), pixels.end()}))
          << kind << name;
    }
    EXPECT_EQ(data->where(1), path(kind + ".tar") + ", member s/0002.png");
  }
}

TEST_F(WebdatasetTest, SeveralArchivesAreReadAsOne) {
  const auto data = open({{"path", "[gnu.tar, p*.tar, ustar.tar]"}});
  EXPECT_EQ(data->size(), 12);
  EXPECT_EQ(data->where(5), path("pax.tar") + ", member s/0002.png");
  const auto some =
      open({{"path", "[gnu.tar, pax.tar, ustar.tar]"}, {"rows", "[3, 9]"}, {"block_samples", "2"}});
  EXPECT_THAT(labels_of<std::int32_t>(*some), ElementsAre(1, 2, 0, 7, 1, 2));
  EXPECT_EQ(features_of(*some, {1, 3}), features_of(*data, {4, 6}));
  EXPECT_EQ(some->where(0), path("gnu.tar") + ", member s/0004.png");
  EXPECT_EQ(some->blocks().num_blocks(), 4);  // of 1, 2, 2 and 1
  std::filesystem::create_directory(path("shards"));
  for (const char* number : {"08", "09", "10"})
    write(std::string("shards/a-") + number + ".tar", archive("gnu"));
  EXPECT_EQ(open({{"path", "shards/a-{08..10}.tar"}})->size(), 12);
  EXPECT_EQ(open({{"path", "shards/a-{0..0}{8..9}.tar"}})->size(), 8);
}

TEST_F(WebdatasetTest, LabelsOfJsonAndNames) {
  EXPECT_THAT(labels_of<std::int32_t>(*open({{"labels", "json"}, {"label_field", "number"}})),
              ElementsAre(2, 0, 7, 1));
  const auto named = open({{"labels", "json"}, {"label_field", "kind"}, {"classes", "[emu, dog, cat]"}});
  EXPECT_THAT(labels_of<std::int32_t>(*named), ElementsAre(2, 1, 2, 0));
  EXPECT_THAT(named->class_names(), ElementsAre("emu", "dog", "cat"));
  EXPECT_EQ(open({{"labels", "null"}})->label_kind(), LabelKind::none);
  expect_data_error(
      [&] {
        open({{"labels", "json"}, {"label_field", "kind"}, {"classes", "[cat, dog]"}});
      },
      path("pax.tar") + ", member s/0004.json", "its label 'emu' is none of the 2 classes");
  expect_data_error(
      [&] {
        open({{"labels", "json"}, {"label_field", "color"}});
      },
      path("pax.tar") + ", member s/0001.json", "has no field 'color'");
}

TEST_F(WebdatasetTest, IncompleteSamplesAreNamed) {
  const auto fails = [&](const std::vector<std::pair<std::string, std::string>>& contents,
                         const std::string& where, const std::string& what) {
    write("y.tar", tar(contents));
    expect_data_error([&] { open({{"path", "y.tar"}}); }, path("y.tar") + ", " + where, what);
  };
  const std::string png = image("rgb.png");
  fails({{"a.png", png}, {"a.cls", "1"}, {"b.png", png}, {"c.png", png}, {"c.cls", "1"}}, "sample b",
        "has no label: its members end with .png");
  fails({{"a.cls", "1"}, {"a.txt", ""}, {"b.png", png}}, "sample a",
        "has no image: its members end with .cls, .txt");
  fails({{"a.png", png}, {"a.jpg", png}, {"a.cls", "1"}}, "member a.jpg",
        "the sample 'a' has a second image");
  fails({{"a.png", png}, {"a.cls", "1"}, {"a.CLS", "1"}}, "member a.CLS",
        "the sample 'a' has a second label");
  fails({{"a.png", png}, {"a.cls", "one"}}, "member a.cls", "its label 'one' is not a whole number");
  fails({{"a.png", png.substr(0, 90)}, {"a.cls", "1"}}, "member a.png, byte 90",
        "cannot be decoded: the PNG file ends early");
  write("y.tar", tar({{"readme", "no sample"}}));
  expect_data_error([&] { open({{"path", "y.tar"}}); }, path("y.tar"), "holds no samples");
  // Other parts of samples, and other images of theirs.
  write("y.tar", tar({{"a.seg.png", "x"}, {"a.PNG", png}, {"a.cls", " 4\n"}}));
  EXPECT_THAT(labels_of<std::int32_t>(*open({{"path", "y.tar"}})), ElementsAre(4));
}

TEST_F(WebdatasetTest, TheIndexIsKeptAndChecked) {
  const Options options{{"path", "[pax.tar, gnu.tar]"}, {"index", "kept.index"}};
  const auto scanned = open({{"path", "[pax.tar, gnu.tar]"}});
  EXPECT_EQ(features_of(*open(options)), features_of(*scanned));
  const std::string kept = read("kept.index");
  // Only the index knows where the samples are now.
  std::string damaged = archive("gnu");
  for (const Member& member : members("gnu")) damaged[static_cast<std::size_t>(member.offset) - 300] ^= 1;
  struct stat before {};
  ASSERT_EQ(::stat(path("gnu.tar").c_str(), &before), 0);
  write("gnu.tar", damaged);
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, path("gnu.tar").c_str(), times, 0), 0);
  EXPECT_EQ(features_of(*open(options)), features_of(*scanned));
  EXPECT_EQ(read("kept.index"), kept);
  // A later time of change, and it is looked through again.
  const timespec later[] = {before.st_atim, {before.st_mtim.tv_sec + 1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path("gnu.tar").c_str(), later, 0), 0);
  EXPECT_THAT(error_of([&] { open(options); }).what_happened(), HasSubstr("checksum of a header"));
  write("gnu.tar", archive("gnu"));
  EXPECT_EQ(features_of(*open(options)), features_of(*scanned));
  // A damaged index is made anew; other sets keep their part of the file; another file is left alone.
  for (const std::size_t at : {std::size_t{20}, kept.size() - 1}) {
    std::string bad = read("kept.index");
    const std::string good = bad;
    bad[at] ^= 1;
    write("kept.index", bad);
    EXPECT_EQ(labels_of<std::int32_t>(*open(options)), labels_of<std::int32_t>(*scanned));
    EXPECT_EQ(read("kept.index"), good);
  }
  open({{"path", "ustar.tar"}, {"labels", "null"}, {"index", "kept.index"}});
  const std::string both = read("kept.index");
  EXPECT_GT(both.size(), kept.size());
  open(options);
  EXPECT_EQ(read("kept.index"), both);
  write("notes", "mine");
  expect_data_error([&] { open({{"index", "notes"}}); }, path("notes"), "is a file, but not an index");
  EXPECT_EQ(read("notes"), "mine");
}

TEST_F(WebdatasetTest, AStreamGivesTheSetInMemory) {
  const Options options{
      {"path", "[pax.tar, gnu.tar, ustar.tar]"}, {"block_samples", "1"}, {"reader_threads", "1"}};
  Options small = options;
  small.emplace_back("memory_gb", "0.000005");
  const auto memory = open(options), stream = open(small);
  ASSERT_NE(stream->stream(), nullptr);
  EXPECT_EQ(stream->fingerprint(), memory->fingerprint());
  EXPECT_EQ(features_of(*stream), features_of(*memory));
  EXPECT_EQ(labels_of<std::int32_t>(*stream), labels_of<std::int32_t>(*memory));
}

TEST_F(WebdatasetTest, InputForPredictions) {
  const auto trained = open({{"classes", "[a, b, c]"}});
  const Params params = params_for("webdataset", {{"path", "pax.tar"}, {"size", "[21, 18]"}});
  const auto input = [&](const std::string& name, bool labels) {
    return open_input("webdataset", params,
                      {.paths = {path(name)},
                       .feature_shape = trained->feature_shape(),
                       .class_names = trained->class_names(),
                       .labels = labels});
  };
  EXPECT_EQ(labels_of<std::int32_t>(*input("gnu.tar", true)), labels_of<std::int32_t>(*trained));
  EXPECT_EQ(input("gnu.tar", false)->label_kind(), LabelKind::none);
  write("z.tar", tar({{"a.png", image("rgb.png")}}));
  EXPECT_EQ(input("z.tar", true)->label_kind(), LabelKind::none);
  EXPECT_EQ(features_of(*input("z.tar", true)), features_of(*trained, {0}));
}

TEST_F(WebdatasetTest, BadOptions) {
  for (const auto& [options, what] : std::vector<std::pair<Options, std::string>>{
           {{{"label_field", "kind"}}, "label_field: is a field of a JSON object"},
           {{{"labels", "json"}}, "labels: json needs to know the field"},
           {{{"image", "[]"}}, "image: names no extension"},
           {{{"path", "a{3..1}.tar"}}, "path: '{3..1}' is no range"},
           {{{"path", "a{1,2}.tar"}}, "path: '{1,2}' is no range"}}) {
    const Error error = error_of([&] { open(options); });
    EXPECT_EQ(error.kind(), ErrorKind::config) << error.what();
    EXPECT_THAT(error.what_happened(), HasSubstr(what));
  }
}

}  // namespace
}  // namespace lockstep::testing
