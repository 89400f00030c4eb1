// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "data/npy_header.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NpyReaderTest : public FolderTest {
 protected:
  std::unique_ptr<ReaderDataset> open(const Options& options) const {
    return open_dataset("npy", params_for("npy", options), folder_);
  }
  std::unique_ptr<ReaderDataset> open(const std::string& features) const {
    return open({{"features", features}});
  }
  /// A .npy file of version 1.0 with this dictionary.
  void write_npy(const std::string& name, const std::string& header, const std::string& data) const {
    const std::string length = {static_cast<char>(header.size()), 0};
    write(name, std::string("\x93NUMPY\x01\x00", 8) + length + header + data);
  }
};

TEST_F(NpyReaderTest, ReadsEveryTypeInBothByteOrders) {
  const std::pair<const char*, DType> types[] = {
      {"uint8", DType::u8},       {"int8", DType::i8},         {"uint16", DType::u16},
      {"uint16_big", DType::u16}, {"int16", DType::i16},       {"int16_big", DType::i16},
      {"int32", DType::i32},      {"int32_big", DType::i32},   {"int64", DType::i64},
      {"int64_big", DType::i64},  {"float16", DType::f16},     {"float16_big", DType::f16},
      {"float32", DType::f32},    {"float32_big", DType::f32}, {"float64", DType::f64},
      {"float64_big", DType::f64}};
  for (const auto& [name, type] : types) {
    SCOPED_TRACE(name);
    const auto data = open(record_vector(std::string(name) + ".npy"));
    EXPECT_EQ(data->feature_dtype(), type);
    EXPECT_EQ(data->feature_shape(), Shape({2, 2}));
    EXPECT_EQ(features_of(*data), counted(12));
    EXPECT_EQ(data->label_kind(), LabelKind::none);
  }
  EXPECT_THAT(features_of(*open(record_vector("bool.npy")), {0}), ElementsAre(0, 1, 0, 1));
}

TEST_F(NpyReaderTest, ReadsVersionsOneToThree) {
  for (const char* name : {"version1.npy", "version2.npy", "version3.npy"})
    EXPECT_EQ(features_of(*open(record_vector(name))), counted(12)) << name;
}

TEST_F(NpyReaderTest, LabelsAreIndicesIfTheyAreIntegers) {
  const auto data =
      open({{"features", record_vector("version1.npy")}, {"labels", record_vector("labels.npy")}});
  EXPECT_EQ(data->label_kind(), LabelKind::indices);
  EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(2, 0, 1));
  const auto rows =
      open({{"features", record_vector("labels.npy")}, {"labels", record_vector("float16.npy")}});
  EXPECT_EQ(rows->label_kind(), LabelKind::rows);
  EXPECT_EQ(rows->num_label_columns(), 4);
  EXPECT_EQ(labels_of<float>(*rows), counted(12));
}

TEST_F(NpyReaderTest, ReadsMembersOfNpzStoredAndDeflated) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const auto data = open({{"path", record_vector(name)}, {"features", "x"}, {"labels", "y"}});
    EXPECT_EQ(features_of(*data), counted(12)) << name;
    EXPECT_THAT(labels_of<std::int32_t>(*data), ElementsAre(2, 0, 1));
    EXPECT_EQ(data->where(1), record_vector(name) + ", record 1");
  }
}

TEST_F(NpyReaderTest, ChannelsFirstBecomeLast) {
  const auto data = open({{"features", record_vector("uint8.npy")}, {"layout", "channels_first"}});
  EXPECT_THAT(features_of(*data, {1}), ElementsAre(4, 6, 5, 7));
}

TEST_F(NpyReaderTest, SeveralFilesAreReadAsOneFromAFolderOrAPattern) {
  std::filesystem::create_directory(path("parts"));
  std::filesystem::copy_file(record_vector("version1.npy"), path("parts/a.npy"));
  std::filesystem::copy_file(record_vector("float32_big.npy"), path("_ignored"));
  write_npy("parts/b.npy", "{'descr': '>f4', 'fortran_order': False, 'shape': (1, 4)}",
            std::string("\x41\x40\0\0\x41\x50\0\0\x41\x60\0\0\x41\x70\0\0", 16));
  write("parts/_SUCCESS", "");
  for (const char* features : {"parts", "parts/*.npy"}) {
    const auto data = open(features);
    EXPECT_EQ(features_of(*data), counted(16));
    EXPECT_EQ(data->where(3), path("parts/b.npy") + ", record 0");
  }
  const auto rows = open({{"features", "parts"}, {"rows", "[2, 4]"}});
  EXPECT_THAT(features_of(*rows), ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_EQ(rows->where(0), path("parts/a.npy") + ", record 2");
}

TEST_F(NpyReaderTest, AStreamHasTheValuesAndTheFingerprintOfMemory) {
  std::string bytes(1200, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  write_npy("x.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (200, 6)}", bytes);
  write_npy("y1.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (77,)}", bytes.substr(0, 77));
  write_npy("y2.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (123,)}", bytes.substr(77, 123));
  const auto with_memory = [&](const std::string& gb) {
    return open({{"features", "x.npy"},
                 {"labels", "[y1.npy, y2.npy]"},
                 {"memory_gb", gb},
                 {"block_samples", "2"},
                 {"reader_threads", "1"}});
  };
  const auto memory = with_memory("1"), stream = with_memory("1e-6");
  ASSERT_EQ(memory->stream(), nullptr);
  ASSERT_NE(stream->stream(), nullptr);
  EXPECT_EQ(features_of(*memory), features_of(*stream));
  EXPECT_EQ(labels_of<std::int32_t>(*memory), labels_of<std::int32_t>(*stream));
  EXPECT_EQ(memory->fingerprint(), stream->fingerprint());
}

TEST_F(NpyReaderTest, PredictionTakesFilesOfTheSameSamples) {
  const Params params = params_for("npy", {{"features", "x"}, {"path", "train.npz"}, {"labels", "y"}});
  const auto data = open_input(
      "npy", params, {.paths = {record_vector("stored.npz")}, .feature_shape = {4}, .labels = true});
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(data->num_label_columns(), 1);
  expect_data_error(
      [&] { open_input("npy", params, {.paths = {record_vector("stored.npz")}, .feature_shape = {5}}); },
      record_vector("stored.npz") + ", member x.npy", "its samples have the shape 4, but the model takes 5");
}

TEST_F(NpyReaderTest, WhatCannotBeReadIsRefused) {
  const auto refused = [&](const std::string& name, const std::string& what, const std::string& place = "") {
    expect_data_error([&] { open(record_vector(name)); }, record_vector(name) + place, what);
  };
  refused("scalar.npy", "holds one number");
  refused("structure.npy", "is an array of structures");
  refused("text.npy", "holds texts (type '<U1')");
  refused("stored.npz", "is not a .npy file");
  EXPECT_EQ(features_of(*open(record_vector("fortran_column.npy"))), counted(4));
  EXPECT_EQ(features_of(*open(record_vector("fortran.npy"))), counted(12));
}

TEST_F(NpyReaderTest, DamagedHeadersAreRefusedWithTheByte) {
  const std::pair<const char*, const char*> headers[] = {
      {"", "no '{'"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1)", "no '}'"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), } x", "goes on after its end"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, -1), }", "no extent"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "no extent"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1), }", "no tuple"},
      {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1, 1), }", "no True or False"},
      {"{'descr': '=f4', 'fortran_order': False, 'shape': (1, 1), }", "no byte order"},
      {"{'descr': '', 'fortran_order': False, 'shape': (1, 1), }", "values of type ''"},
      {"{'descr': '<f4', 'descr': '<f4', 'shape': (1, 1), }", "was there before"},
      {"{'descr': '<f4', 'fortran_order': False}", "lacks descr, fortran_order or shape"},
      {"{'descr': '<f4', 'fortran", "without an end"}};
  for (const auto& [header, what] : headers) {
    const Error error = error_of([&] { parse_npy_header(header, 10, "x.npy"); });
    EXPECT_EQ(error.kind(), ErrorKind::data) << header;
    EXPECT_THAT(error.where(), HasSubstr("x.npy, byte ")) << header;
    EXPECT_THAT(error.what_happened(), HasSubstr(what));
  }
  const Error error = error_of([&] {
    parse_npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1152921504606846976, 16)}", 10,
                     "x.npy");
  });
  EXPECT_THAT(error.what(), HasSubstr("announces 0 values"));
}

TEST_F(NpyReaderTest, TruncatedAndLongerFilesAreRefused) {
  const std::string whole = bytes_of(record_vector("version1.npy"));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    write("cut.npy", whole.substr(0, bytes));
    const Error error = error_of([&] { open("cut.npy"); });
    EXPECT_EQ(error.kind(), ErrorKind::data) << bytes;
    EXPECT_THAT(error.where(), HasSubstr(path("cut.npy"))) << bytes;
  }
  write("cut.npy", whole.substr(0, whole.size() - 17));
  expect_data_error([&] { open("cut.npy"); }, path("cut.npy") + ", record 1", "the file ends early");
  write("long.npy", whole + "x");
  expect_data_error([&] { open("long.npy"); }, path("long.npy"), "continues after the 3 rows");
}

TEST_F(NpyReaderTest, DamagedZipFilesAreRefused) {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::string whole = bytes_of(record_vector(name));
    const auto read = [&] { open({{"path", "cut.npz"}, {"features", "x"}, {"labels", "y"}}); };
    for (std::size_t bytes = 0; bytes < whole.size(); bytes += 7) {
      write("cut.npz", whole.substr(0, bytes));
      const Error error = error_of(read);
      EXPECT_EQ(error.kind(), ErrorKind::data) << bytes;
      EXPECT_THAT(error.where(), HasSubstr(path("cut.npz"))) << bytes;
    }
    // Each byte in turn: an error that names the file, or the same values (what no rule covers).
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 0x55);
      write("cut.npz", changed);
      try {
        read();
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::data) << at << error.what();
        EXPECT_THAT(error.where(), HasSubstr(path("cut.npz"))) << at;
      }
    }
  }
  const std::string whole = bytes_of(record_vector("deflated.npz"));
  std::string changed = whole;
  changed[whole.find("PK\x01\x02") + 16] ^= 1;  // the checksum of x
  write("crc.npz", changed);
  EXPECT_THAT(error_of([&] {
                open({{"path", "crc.npz"}, {"features", "x"}});
              }).what(),
              HasSubstr("the checksum of the unpacked data is wrong"));
  EXPECT_THAT(error_of([&] {
                open({{"path", record_vector("stored.npz")}, {"features", "z"}});
              }).what(),
              HasSubstr("has no member z.npy\n  It has: x.npy, y.npy"));
}

TEST_F(NpyReaderTest, AFileThatShrinksWhileItIsReadIsAnError) {
  write("x.npy", bytes_of(record_vector("version1.npy")));
  const auto source = file_bytes(path("x.npy"));
  const NpyHeader header = read_npy_header(*source);
  std::filesystem::resize_file(path("x.npy"), static_cast<std::uintmax_t>(header.data_offset + 20));
  std::vector<char> values(48);
  expect_data_error([&] { source->read(header.data_offset, values.data(), values.size()); },
                    path("x.npy") + ", byte 148", "truncated, or changed while it was read");
}

TEST_F(NpyReaderTest, FilesThatDifferAreRefused) {
  const auto both = [](const std::string& a, const std::string& b) {
    return "[" + record_vector(a) + ", " + record_vector(b) + "]";
  };
  expect_data_error([&] { open(both("uint8.npy", "int8.npy")); }, record_vector("int8.npy"),
                    "its values are int8, but those of " + record_vector("uint8.npy") + " are uint8");
  expect_data_error([&] { open(both("float32.npy", "version1.npy")); }, record_vector("version1.npy"),
                    "its samples have the shape 4, but those of");
  expect_data_error(
      [&] {
        open({{"features", record_vector("fortran_column.npy")}, {"labels", record_vector("labels.npy")}});
      },
      record_vector("labels.npy"), "holds 3 labels for 4 samples: ");
  expect_data_error(
      [&] {
        open({{"features", record_vector("labels.npy")}, {"layout", "channels_first"}});
      },
      record_vector("labels.npy"), "needs samples of at least two axes");
  EXPECT_EQ(error_of([&] {
              open({{"path", record_vector("deflated.npz")}, {"features", "x"}, {"memory_gb", "1e-8"}});
            }).kind(),
            ErrorKind::config);
}

}  // namespace
}  // namespace lockstep::testing
