# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Pages that map another program to Lockstep (docs/from_*.md): what they name exists.

In their tables the first column names what the other program has. All other columns, and lists and text, name Lockstep's: code
quotes are commands with their options, keys and names of the configuration, C++, or files of a run. Configurations pass
`lockstep check`.
"""
import os
import pathlib
import re
import subprocess
import unittest

from lockstep_run import PROGRAM, SOURCE, LockstepTest, main

PAGES = sorted((SOURCE / "docs").glob("from_*.md"))
# What the pages mention of others, outside of first columns.
FOREIGN = re.compile(r"mpirun|srun|torchrun|accelerate|h5ls|TF_CONFIG|MASTER_ADDR|session\.run|UPDATE_OPS|strategy\.scope|\.keras|"
                     r"(?:in_features|input_shape|from_logits|nn\.CrossEntropyLoss)$")


def reference():
    """What the configuration reference knows: {section in lower case: keys}, all words, {key: its choices}."""
    text = subprocess.run([PROGRAM, "config-reference"], capture_output=True, text=True, check=True).stdout
    sections, words, choices, section = {}, set(), {}, ""
    for line in text.splitlines():
        if heading := re.match(r"## (.*)", line):
            section = heading[1].lower()
            words.add(section.split()[-1])
        elif row := re.match(r"\| `([\w/]+)` \| [^|]* \| [^|]* \| ((?:\\\||[^|])*) \|", line):
            sections.setdefault(section, set()).add(row[1])
            words.add(row[1])
            choices.setdefault(row[1], set()).update(re.findall(r"[a-z]\w+", row[2]) if "|" in row[2] else ())
    return sections, words, choices


def spans(page):
    """(number of the line, code quote) of all that names Lockstep's things."""
    fence = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            fence = not fence
        elif not fence and not line.startswith("    "):
            cells = line.split(" | ")[1:] if line.startswith("| ") else [line]
            for quote in re.findall(r"`([^`]+)`", " | ".join(cells)):
                yield number, quote


class Names:
    def __init__(self):
        self.sections, self.words, self.choices = reference()
        self.top = self.sections["top level"]
        folders = SOURCE / "src", pathlib.Path(os.environ["LOCKSTEP_GENERATED"])
        headers = [path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.h")]
        self.headers = [set(re.findall(r"\w+", text)) for text in headers]
        self.cpp = set().union(*self.headers)
        others = [page.read_text(encoding="utf-8") for page in (SOURCE / "docs").glob("*.md") if page not in PAGES]
        self.quoted = set(re.findall(r"`([^`\n]+)`", "\n".join(others)))
        self.run_files = (SOURCE / "docs/running.md").read_text(encoding="utf-8")
        self.helps = {}
        self.commands = re.findall(r"^  ([\w-]+)  ", self.help().partition("Subcommands:")[2], re.MULTILINE)
        self.options = set()
        for command in self.commands:
            self.options |= set(re.findall(r"--[\w-]+", self.help(command)))
            if "SUBCOMMAND" in self.help(command):
                for below in re.findall(r"^  ([\w-]+)  ", self.help(command).partition("Subcommands:")[2], re.MULTILINE):
                    self.options |= set(re.findall(r"--[\w-]+", self.help(command, below)))

    def help(self, *command):
        if command not in self.helps:
            self.helps[command] = subprocess.run([PROGRAM, *command, "--help"], capture_output=True, text=True, check=False).stdout
        return self.helps[command]

    def is_command(self, text):
        words = text.split()[1:]
        command = [words[0]] if words and words[0] in self.commands else []
        if command and len(words) > 1 and "SUBCOMMAND" in self.help(*command):
            command.append(words[1])
        known = self.help(*command)
        return bool(command) and known != "" and all(word in known for word in words if word.startswith("--"))

    def keys_of(self, *starts):
        """The keys of all sections of the reference that begin so."""
        return set().union(*(keys for section, keys in self.sections.items() if section.startswith(starts)))

    def is_path(self, path):
        """checkpoint.keep, data.eval.take, optimizer.groups: the first is a section, the others are keys of what it may hold."""
        first, *rest = path.split(".")
        if path.startswith("section."):  # section.key=value stands for all
            return True
        below = {"data": ("reader ", "section data", "samples of", "every data set", "every training set", "copies on"),
                 "model": ("section model", "head", "regularization", "every layer"),
                 "optimizer": ("section optimizer", "optimizer ", "group")}.get(first, (f"section {first}",))
        return first in self.top and bool(rest) and set(rest) <= self.keys_of(*below)

    def are_options(self, name, keys):
        """These keys stand below `name`: those of a thing of this name, or of a section whose items have names."""
        known = self.keys_of("every ") | set().union(*(self.sections[s] for s in self.sections if s.split()[-1] == name))
        items = {"average", "warmup", "regularization", "hooks", "optimizer", "layers", "inputs", "targets", "groups"}
        return keys <= known or (name in items and keys <= self.words)

    def is_yaml(self, text):
        """`model.regularization: [{variables: "*/kernel", l2: 1.0e-4}]`, from the inside outwards."""
        text = re.sub(r'"[^"]*"', "x", text)
        while inner := re.search(r"(?:([\w.]+): )?\[?\{([^{}]*)\}\]?", text):
            keys = set(re.findall(r"([\w.]+): ", inner[2]))
            if inner[1] and not self.are_options(inner[1].split(".")[-1], keys):
                return False
            text = text[:inner.start()] + (f"{inner[1]}: 0" if inner[1] else "0") + text[inner.end():]
        keys = re.findall(r"([\w.]+):(?: |$)", text)
        if not all(self.is_path(key) if "." in key else key in self.words for key in keys):
            return False
        value = re.fullmatch(r"(?:\w+\.)*(\w+): ([a-z_]+)", text)
        return bool(keys) and (value is None or value[2] in (self.choices.get(value[1]) or self.words) | {"true", "false", "null"})

    def is_cpp(self, text):
        """A::b needs a header that has both; b() alone one that has b."""
        text = re.sub(r"\(.*|<.*", "", text)
        names = text.split("::")
        if not all(re.fullmatch(r"\w+", name) for name in names):
            return False
        return any(set(names) <= header for header in self.headers)

    def exist(self, text):
        word = text.strip()
        if FOREIGN.match(word) or re.fullmatch(r"[-\d.\s\[\],a-z]*\d[-\d.\s\[\]]*", word):
            return True
        if word.startswith("lockstep "):
            return self.is_command(word)
        if word.startswith("--"):
            return word.split()[0] in self.options
        if word in self.words | self.top | set(self.commands) | self.quoted or any(word in of_key for of_key in self.choices.values()):
            return True
        if re.search(r"\w: ?", word) and "::" not in word and "(" not in word:
            return self.is_yaml(word)
        if re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", word) and word.split(".")[0] in self.top:
            return self.is_path(word)
        if word.endswith(".h"):
            return (SOURCE / "include" / word).exists()
        if word.startswith("examples/"):
            return (SOURCE / word).exists()
        return self.is_cpp(word) or ("/" in word or "." in word or word.isupper()) and word in self.run_files


class MappingPages(LockstepTest):
    def test_every_name_exists(self):
        names, count = Names(), 0
        for page in PAGES:
            for number, quote in spans(page):
                count += 1
                with self.subTest(f"{page.name}:{number}: {quote}"):
                    self.assertTrue(names.exist(quote))
        self.assertGreater(count, 500)

    def test_configurations_pass_the_check(self):
        (self.folder / "data").symlink_to(SOURCE / "data")
        count = 0
        for page in PAGES:
            for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
                (self.folder / "page.yaml").write_text(block, encoding="utf-8")
                self.lockstep("check", "page.yaml", cwd=self.folder)
                count += 1
        self.assertGreaterEqual(count, len(PAGES))


def plain(name):
    """"BatchNorm1d" and "batch_norm" alike, without what says the kind: "CTCLoss" is ctc."""
    return re.sub(r"(?:loss|layer|[1-3]d)$", "", re.sub(r"[^a-z0-9]", "", name.lower()))


class Missing(unittest.TestCase):
    """A row that says "none" names something that is not there."""

    def setUp(self):
        names = Names()
        text = subprocess.run([PROGRAM, "config-reference"], capture_output=True, text=True, check=True).stdout
        kinds = "Reader|Layer|Loss|Optimizer|Schedule|Transform|Hook|Initializer|Average"  # metrics are no losses
        self.known = {plain(name) for name in re.findall(rf"(?m)^## (?:{kinds}) (\w+)$", text)}
        self.known |= {plain(command) for command in names.commands}
        self.formats = set(re.findall(r"\.?\w+", names.help("import") + names.help("export")))
        self.synonyms = {}
        for line in (SOURCE / "src/config/synonyms.txt").read_text(encoding="utf-8").splitlines():
            if found := re.match(r"([a-z][a-z0-9 ]*)(?: -> |: .*`lockstep )(\w+)", line):
                for word in found[1].split():
                    self.synonyms.setdefault(word, []).append(found[2])

    def there(self, name):
        """What Lockstep has of this name; None if it has nothing."""
        if name in self.formats and re.match(r"\.|[A-Z]{4}|safetensors", name):
            return name
        called = name.split(".")[-1]
        if not re.fullmatch(r"\w*[A-Z]\w*", called):  # a class, no argument or option
            return None
        last = plain(called)
        if last in self.known:
            return last
        synonyms = self.synonyms.get(last, ()) if len(last) > 3 else ()
        return next((ours for ours in synonyms if plain(ours) in self.known), None)

    def test_a_row_without_a_counterpart_names_nothing_that_exists(self):
        count = 0
        for page in PAGES:
            for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
                cells = line.strip("| ").split(" | ")
                if not line.startswith("| ") or len(cells) < 2 or not all(re.match("none", cell) for cell in cells[1:2]):
                    continue
                for name in re.findall(r"`([^`]+)`", cells[0]) + re.findall(r"(?<!`)\b[A-Z]\w*[A-Z]\w*\b(?!`)", cells[0]):
                    count += 1
                    with self.subTest(f"{page.name}:{number}: {name}"):
                        self.assertIsNone(self.there(name))
        self.assertGreater(count, 50)

    def test_names_that_exist_are_found(self):
        for name in (".pt", "safetensors", "ONNX", "nn.GELU", "KLDivLoss", "BatchNorm2d", "AdamW", "KerasTuner", "Huber", "RAdam", "nn.RMSNorm"):
            self.assertIsNotNone(self.there(name), name)
        for name in ("TorchScript", "CTCLoss", "Adamax", "nn.Mish", "evaluate(hooks=)", "reshape"):
            self.assertIsNone(self.there(name), name)


class Reading(unittest.TestCase):
    def test_a_name_that_is_wrong_is_found(self):
        names = Names()
        for right in ("checkpoint.keep_best", "lockstep checkpoint list", "--run-dir", "train.on_nan: stop", "reduce_on_plateau",
                      "average: {ema: {decay: 0.999}}", "HookContext::request_stop()", "BoundedQueue", "metrics.jsonl", "data.eval.take"):
            self.assertTrue(names.exist(right), right)
        for wrong in ("checkpoint.keep_worst", "lockstep fit", "lockstep evaluate --split", "--model-dir", "train.on_nan: ignore",
                      "reduce_lr_on_plateau", "average: {ema: {rate: 0.999}}", "HookContext::halt()", "BoundedStack", "metrics.csv",
                      "data.eval.steps", "trian.steps"):
            self.assertFalse(names.exist(wrong), wrong)


if __name__ == "__main__":
    main()
