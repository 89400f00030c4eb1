# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` has written, and the programs of the build tree: no binary looks for libraries in the current folder,
the pages and their links are there, and bash completes.

  installation_test.py PREFIX BUILD
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PREFIX, BUILD = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
SHARED = PREFIX / "share" / "lockstep"


def output(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def is_binary(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def binaries(folder):
    """Programs and shared objects; not the objects that they are linked from."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.suffix not in (".o", ".a") and is_binary(path):
            yield path


class LibraryPaths(unittest.TestCase):
    def test_every_run_path_is_absolute(self):
        for folder in (PREFIX, BUILD):
            found = 0
            for path in binaries(folder):
                found += 1
                for text in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", output("readelf", "-d", path)):
                    for element in text.split(":"):
                        self.assertTrue(element.startswith(("/", "$ORIGIN")), f"{path}: run path '{text}'")
                        self.assertFalse(folder == PREFIX and element.startswith(str(BUILD)), f"{path}: run path '{text}'")
            self.assertGreater(found, 0, folder)

    def test_library_in_the_current_folder_is_not_loaded(self):
        for program in (PREFIX / "bin" / "lockstep", BUILD / "bin" / "lockstep"):
            with tempfile.TemporaryDirectory() as folder:
                for name in re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", program)):
                    if name.startswith(("libmpi", "libhdf5")):
                        (pathlib.Path(folder) / name).write_text("planted", encoding="utf-8")
                self.assertTrue(os.listdir(folder))
                self.assertIn("lockstep", output(program, "--version", cwd=folder))


class Pages(unittest.TestCase):
    def test_links_between_installed_pages_lead_somewhere(self):
        pages = sorted(SHARED.rglob("*.md"))
        self.assertGreater(len(pages), 20)
        for page in pages:
            text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
            for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
                if "://" not in link and not link.startswith("../bench"):  # benchmarks are not installed
                    self.assertTrue((page.parent / link).exists(), f"{page}: {link}")

    def test_manual_page_names_every_command(self):
        text = (PREFIX / "share" / "man" / "man1" / "lockstep.1").read_text(encoding="utf-8")
        self.assertTrue(text.startswith(".TH LOCKSTEP 1 "))
        known = re.findall(r"^  (\w[\w-]*) {2,}", output(PREFIX / "bin" / "lockstep", "--help").partition("Subcommands:")[2], re.M)
        self.assertIn("train", known)
        for command in known:
            self.assertIn("\n.SS lockstep " + command.replace("-", "\\-"), text)
        self.assertTrue((PREFIX / "share" / "man" / "man1" / "lockstep-train.1").exists())

    def test_completion_and_schema_are_where_shells_and_editors_look(self):
        for path in ("zsh/site-functions/_lockstep", "fish/vendor_completions.d/lockstep.fish", "lockstep/docs/config.schema.json"):
            self.assertGreater((PREFIX / "share" / path).stat().st_size, 1000, path)

    def test_batch_scripts_are_executable_as_in_the_source(self):
        self.assertTrue((SHARED / "slurm" / "train.sbatch").exists())
        self.assertTrue((SHARED / "slurm" / "job.sh").exists())


class Completion(unittest.TestCase):
    def complete(self, *words):
        """What bash offers for the last word."""
        script = f"""
            compopt() {{ :; }}
            source {PREFIX}/share/bash-completion/completions/lockstep
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            _lockstep
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        return output("bash", "-c", script, "bash", "lockstep", *words).split()

    def test_commands_options_values_and_keys(self):
        for words, expected in ((("tr",), ["train", "trace"]),
                                (("checkpoint", "ex"), ["export"]),
                                (("checkpoint", "export", "x", "--vari"), ["--variables"]),
                                (("train", "--run"), ["--run-dir"]),
                                (("train", "--resume", "n"), ["never"]),
                                (("train", "--set", "train.batch"), ["train.batch_size="]),
                                (("train", "conf"), [])):
            self.assertEqual(self.complete(*words), expected, words)
        self.assertIn("--steps", self.complete("train", "--"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
