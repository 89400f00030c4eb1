# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Tables as spreadsheets and other programs write them, compared with pandas; what cannot be read is named, and its advice works."""
import bz2
import gzip
import io
import lzma
import re
import shutil
import subprocess
import zipfile

from lockstep_run import main
from read_values import ValuesTest, needs_pandas, numpy, pandas

FRAME = {"a": [1, -2, 3, 40000], "b": [0.5, 1.25, -3.75, 1e-3], "y": [0, 1, 1, 0]}
COMMON = "format: csv, path: %s, header: true, labels: y"


@needs_pandas
class TableFormsTest(ValuesTest):
    def setUp(self):
        super().setUp()
        self.frame = pandas.DataFrame(FRAME)
        self.path = self.folder / "t.csv"

    def write(self, text, name="t.csv"):
        (self.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    def assert_read(self, frame, data=COMMON % "t.csv", *more):
        self.assert_values(data, frame[["a", "b"]].to_numpy("float32"), frame["y"], *more)

    def test_separators_are_found_as_pandas_finds_them(self):
        for separator in (",", ";", "\t", "|", " "):
            with self.subTest(separator):
                text = self.frame.to_csv(index=False, sep=separator)
                self.write(text)
                self.assert_read(pandas.read_csv(io.StringIO(text), sep=None, engine="python"))
        self.write("".join(f"  {line.replace(' ', chr(9) + '   ')}  \n" for line in text.splitlines()))
        self.assert_read(pandas.read_csv(self.path, sep=r"\s+"))
        self.assert_read(self.frame, COMMON % "t.csv" + ", delimiter: blanks")

    def test_a_comma_in_texts_and_blanks_in_them_separate_nothing(self):
        self.write('name;a;b;y\n"Smith; J.";1;0.5;0\nDoe, Jane;2;1.5;1\nvan der Berg, A, B;3;2.5;1\n')
        self.assert_read(pandas.read_csv(self.path, sep=";"), COMMON % "t.csv" + ", ignore: name")
        self.write("New York\nLos Angeles\nNew York\n")
        self.assert_values("format: csv, path: t.csv, label_column: null, categories: {0: auto}", [[0, 1], [1, 0], [0, 1]])
        self.write('x,y\n"1;2",0\n"3;4",1\n')
        self.assert_values("format: csv, path: t.csv, header: true, labels: y, categories: {x: auto}", [[1, 0], [0, 1]], [0, 1])

    def test_a_wrong_separator_is_found_out(self):
        self.write(self.frame.to_csv(index=False, sep=";"))
        self.refused(COMMON % "t.csv" + ', delimiter: ","', "Fields look separated by ';': set delimiter: \";\"")
        self.refused('format: csv, path: t.csv, delimiter: ","', "Fields look separated by ';'")
        self.assert_read(self.frame, COMMON % "t.csv" + ', delimiter: ";"')
        self.write(self.frame.to_csv(index=False), "t.tsv")
        self.refused(COMMON % "t.tsv", "Fields look separated by ',': set delimiter: \",\"")
        self.assert_read(self.frame, COMMON % "t.tsv" + ', delimiter: ","')
        self.write(self.frame.to_csv(index=False, sep="\t"), "t.tsv")
        self.assert_read(self.frame, COMMON % "t.tsv")

    def test_the_line_that_names_the_separator(self):
        for separator in (";", ",", "\t", "|"):
            for line in (f"sep={separator}", f'"sep={separator}"'):
                self.write(f"{line}\r\n" + self.frame.to_csv(index=False, sep=separator, lineterminator="\r\n"))
                self.assert_read(self.frame)
                self.assert_read(self.frame, COMMON % "t.csv" + ", skip_lines: 1")  # the line is one of those
        self.write("sep=;\n" + self.frame.to_csv(index=False, sep=";"))
        self.refused(COMMON % "t.csv" + ', delimiter: ","', r"line 1: says that ';' separates columns.*set delimiter: \";\"")

    def test_decimal_commas(self):
        for separator in (";", "\t", " ", "|", ","):
            with self.subTest(separator):
                self.write(self.frame.to_csv(index=False, sep=separator, decimal=",", quoting=1 if separator == "," else 0))
                if separator == ",":  # "1,5" in quotes may be a list
                    self.refused(COMMON % "t.csv", "'0,5' is not a number.*set decimal: \",\"")
                else:
                    self.assert_read(pandas.read_csv(self.path, sep=separator, decimal=","))
                self.assert_read(self.frame, COMMON % "t.csv" + ', decimal: ","')
        self.write(self.frame.to_csv(index=False, sep=";", decimal=","))
        self.refused(COMMON % "t.csv" + ', decimal: "."', "'0,5' is not a number.*set decimal: \",\"")

    def test_a_comma_that_may_be_of_thousands_is_not_guessed(self):
        self.write("a;b;y\n1,234;5;0\n2,345;6;1\n")
        text = self.refused(COMMON % "t.csv", "'1,234' is not a number")
        self.assertRegex(text, 'set decimal: ","; if it separates thousands, thousands: ","')
        self.assert_read(pandas.read_csv(self.path, sep=";", decimal=","), COMMON % "t.csv" + ', decimal: ","')
        self.assert_read(pandas.read_csv(self.path, sep=";", thousands=","), COMMON % "t.csv" + ', thousands: ","')
        self.write("a;b;y\n0,5;1.234;0\n")  # a decimal comma, and a point that pandas would take for one, too
        self.refused(COMMON % "t.csv", "'0,5' is not a number")
        self.write("a;b;y\n0,5;6;0\n1,5;1.234;1\n")
        self.refused(COMMON % "t.csv", "'0,5' is not a number|'1.234' is not a number")
        self.refused(COMMON % "t.csv" + ', decimal: ","', "line 3: column b: '1.234' is not a number.*thousands")

    def test_thousands(self):
        self.write('a;b;y\n1.234.567,5;-1.000;0\n"12.345";0,25;1\n')
        self.assert_read(pandas.read_csv(self.path, sep=";", decimal=",", thousands="."), COMMON % "t.csv" + ', thousands: "."')
        self.write('a,b,y\n"1,234,567.5",-1.5,0\n"12,345",0.25,1\n')
        self.assert_read(pandas.read_csv(self.path, thousands=","), COMMON % "t.csv" + ', thousands: ","')
        self.write("a;b;y\n1 234,5;1\u202f000;0\n12\u00a0345;0,25;1\n")
        expected = pandas.DataFrame({"a": [1234.5, 12345], "b": [1000, 0.25], "y": [0, 1]})
        self.assert_read(expected, COMMON % "t.csv" + ", thousands: ' ', decimal: ','")
        for wrong in ("1.23,5", "1234.567", ".123", "1.2345"):  # pandas takes out every mark
            self.write(f"a;b;y\n{wrong};1;0\n")
            self.refused(COMMON % "t.csv" + ', thousands: "."', "is not a number")

    def test_line_ends_of_every_kind(self):
        lines = self.frame.to_csv(index=False).splitlines()
        for ends in (("\r",), ("\r\n",), ("\n",), ("\n", "\r\n", "\r"), ("\r\r\n",)):
            for last in (True, False):
                with self.subTest(ends=ends, last=last):
                    text = "".join(line + ends[i % len(ends)] for i, line in enumerate(lines))
                    self.write(text if last else text.rstrip("\r\n"))
                    self.assert_read(pandas.read_csv(self.path))
                    self.assert_read(self.frame, COMMON % "t.csv" + ", memory_gb: 1e-8, block_samples: 2")

    def test_many_rows_keep_their_places_whatever_ends_them(self):
        """Longer than the blocks that are read, so that an end lies across two of them."""
        rows = numpy.random.default_rng(1).integers(0, 1000, (50000, 3))
        for end in ("\r", "\r\n"):
            self.write("x" * 7 + end + end.join(",".join(map(str, row)) for row in rows))
            common = "format: csv, path: t.csv, label_column: null, skip_lines: 1"
            self.assert_values(common, rows)
            self.assert_values(common + ", memory_gb: 1e-5, block_samples: 100", rows)

    def test_blank_lines_are_passed_over_as_pandas_does(self):
        self.write("\n\na,b,y\n\n1,2,0\n  \t\n\n3,4,1\n\n")
        self.assert_read(pandas.read_csv(self.path))
        self.assert_read(pandas.read_csv(self.path), COMMON % "t.csv" + ", memory_gb: 1e-8, block_samples: 1")
        self.write("a\tb\ty\n1\t2\t0\n\t\t\n", "t.tsv")  # tabs are fields
        self.refused(COMMON % "t.tsv" + ", missing: 0", "line 3: column y is empty")
        self.write("1\n\n3\n")
        self.refused("format: csv, path: t.csv, label_column: null", "line 2: is blank.*write NA")
        self.write("1\nNA\n3\n")
        self.assert_values("format: csv, path: t.csv, label_column: null, missing: 2", [1, 2, 3])

    def test_missing_values_are_those_of_pandas(self):
        texts = sorted(getattr(__import__("pandas._libs.parsers", fromlist=["STR_NA_VALUES"]), "STR_NA_VALUES"))
        self.assertGreater(len(texts), 15)
        self.write("a,b,y\n" + "".join(f"{text},{i},0\n" for i, text in enumerate(texts)))
        found = pandas.read_csv(self.path)
        self.assertTrue(found["a"].isna().all())
        self.assert_read(found.fillna(-7), COMMON % "t.csv" + ", missing: -7")

    def test_true_and_false_are_numbers(self):
        """As pandas.get_dummies writes columns, and spreadsheets; as features, and as one column for each class."""
        frame = pandas.get_dummies(pandas.DataFrame({"a": [1, 2, 3, 4], "k": ["x", "y", "z", "x"]}), dtype=bool)
        for change in (str, str.lower, str.upper):
            with self.subTest(change("True")):
                self.write("\n".join([frame.columns.str.cat(sep=","), *(change(",".join(map(str, row))) for row in frame.itertuples(index=False))]) + "\n")
                numbers = pandas.read_csv(self.path).to_numpy("float32")
                self.assert_values("format: csv, path: t.csv, header: true, label_column: null", numbers)
                self.assert_values('format: csv, path: t.csv, header: true, labels: ["k_x", "k_y", "k_z"]', numbers[:, :1], numbers[:, 1:])
        self.write("a,y\n1,0\nYes,1\n2,0\n")
        self.refused("format: csv, path: t.csv, header: true, labels: y", "'Yes' is not a number")

    def test_texts_of_other_encodings(self):
        plain = self.frame.rename(columns={"b": "bä"})
        for encoding in ("utf-8-sig", "utf-8"):
            plain.to_csv(self.path, index=False, encoding=encoding)
            self.assert_values(COMMON % "t.csv" + ", columns: [a, bä]", plain[["a", "bä"]])
        for encoding in ("utf-16", "utf-16-be", "utf-16-le", "utf-32"):
            mark = {"utf-16-be": "\ufeff", "utf-16-le": "\ufeff"}.get(encoding, "")
            self.write((mark + self.frame.to_csv(index=False)).encode(encoding), "my table.csv")
            text = self.refused(COMMON % "'my table.csv'", "is a text in UTF-(16|32)")
            self.follows(text, r"(iconv .*?my table\.csv' > '.*?utf8\.csv')")
            self.assert_read(self.frame, COMMON % "'my table.utf8.csv'")

    def follows(self, text, pattern):
        """Runs the command of an advice in the folder."""
        command = re.search(pattern, text)[1]
        if shutil.which(command.split()[0]) is None:
            return False
        subprocess.run(command, shell=True, check=True, cwd=self.folder, timeout=60)
        return True

    def test_other_compressions_are_named_with_the_command_that_unpacks_them(self):
        plain = self.frame.to_csv(index=False).encode()
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("t.csv", plain)
        for ending, what, packed in ((".xz", "is compressed by xz", lzma.compress(plain)), (".bz2", "is compressed by bzip2", bz2.compress(plain)),
                                     (".zip", "is a ZIP archive", archive.getvalue()), (".zst", "is compressed by zstd", self.zstd(plain))):
            with self.subTest(ending):
                for old in self.folder.glob("t.csv*"):
                    old.unlink()
                self.write(packed, "t.csv" + ending)
                text = self.refused(COMMON % ("t.csv" + ending), what)
                if self.follows(text, r"Make one: (.*)"):
                    self.assert_read(self.frame)
        self.write(gzip.compress(plain), "t.csv.gz")
        self.assert_read(self.frame, COMMON % "t.csv.gz")
        self.write("BZh,b,y\n1,2,0\n")  # begins as bzip2 does
        self.assert_values("format: csv, path: t.csv, header: true, labels: y", [1, 2], [0])
        self.write(archive.getvalue(), "t.xlsx")
        self.refused(COMMON % "t.xlsx", "is a workbook, no text.*Save the sheet as CSV")
        self.write(b"PAR1\x15\x04", "t.parquet")
        self.refused(COMMON % "t.parquet", r"is a Parquet file.*read_parquet.* \S+t\.parquet \S+t\.csv")

    def zstd(self, plain):
        """A frame with one raw block: no library is needed for it."""
        header = b"\x28\xb5\x2f\xfd" + bytes([0x20, len(plain)]) if len(plain) < 256 else None
        return header + ((len(plain) << 3) | 1).to_bytes(3, "little") + plain

    def test_predictions_take_files_of_another_form(self):
        config = self.folder / "run.yaml"
        self.write(self.frame.to_csv(index=False))
        config.write_text("seed: 1\ndata: {%s}\nmodel:\n  layers: [{dense: {units: 2}}]\n  loss: softmax_cross_entropy\n"
                          "optimizer: {gradient_descent: {learning_rate: 0.01}}\ntrain: {batch_size: 2, epochs: 1}\n" % (COMMON % "t.csv"), encoding="ascii")
        self.train("run", config=config)
        found = []
        for name, form in (("x.csv", {}), ("z.csv", {"sep": ";", "decimal": ","}), ("z.tsv", {"sep": "\t"})):
            self.frame.drop(columns="y").to_csv(self.folder / name, index=False, **form)
            self.lockstep("predict", self.folder / "run", "--input", self.folder / name, "--output", self.folder / "out.csv")
            found.append((self.folder / "out.csv").read_text())
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])


if __name__ == "__main__":
    main()
