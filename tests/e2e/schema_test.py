# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The JSON schema of a configuration (lockstep schema), as the Python package jsonschema reads it: every example is valid, and
what the program refuses because of a name, a type or a range is not. Skipped without jsonschema and PyYAML, which
scripts/test.sh installs into build/python.
"""
import json
import subprocess
import sys

from lockstep_run import PROGRAM, SOURCE, LockstepTest, main, python_with

sys.path.insert(0, str(SOURCE / "tests" / "fuzz"))
import option_sweep  # noqa: E402
from config_generator import to_yaml  # noqa: E402

# Reads [[name, YAML or JSON]] from standard input and prints {name: [messages]} of what is not valid.
VALIDATE = r"""
import json, re, sys
import jsonschema, yaml

class Loader(yaml.SafeLoader):
    pass

# Scalars as YAML 1.2 has them.
Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in (("null", r"^(~|null|Null|NULL|)$", ["~", "n", "N", ""]), ("bool", r"^(true|True|TRUE|false|False|FALSE)$", list("tTfF")),
                            ("int", r"^[-+]?[0-9]+$", list("-+0123456789")),
                            ("float", r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$", list("-+0123456789."))):
    Loader.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile(pattern), first)
Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(loader.construct_scalar(node)))
Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))

def keys_as_text(value):
    if isinstance(value, dict):
        return {str(key): keys_as_text(item) for key, item in value.items()}
    return [keys_as_text(item) for item in value] if isinstance(value, list) else value

schema, documents = json.load(sys.stdin)
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
print(json.dumps({name: [error.json_path + ": " + error.message[:300] for error in validator.iter_errors(
    keys_as_text(yaml.load(document, Loader) if isinstance(document, str) else document))] for name, document in documents}))
"""


class SchemaTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.python = python_with("jsonschema", "yaml")
        if self.python is None:
            self.skipTest("no Python has jsonschema and yaml (scripts/test.sh installs them into build/python)")
        self.schema = json.loads(self.lockstep("schema").out)

    def mistakes(self, documents):
        """{name: [what the schema says]} of configurations as text or as dicts."""
        done = subprocess.run([self.python, "-c", VALIDATE], input=json.dumps([self.schema, documents]), capture_output=True, text=True,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return json.loads(done.stdout)

    def test_every_example_is_valid(self):
        examples = sorted((SOURCE / "examples").rglob("*.yaml"))
        self.assertGreater(len(examples), 10)
        found = self.mistakes([(str(path.relative_to(SOURCE)), path.read_text(encoding="utf-8")) for path in examples])
        # A layer of a program of its own, which `lockstep check` does not know either.
        custom = found.pop("examples/custom_layer/digits.yaml")
        self.assertTrue(custom and all("layers" in message for message in custom), custom)
        self.assertEqual({name: messages for name, messages in found.items() if messages}, {})

    def test_a_resolved_configuration_is_valid(self):
        self.train("run", config=SOURCE / "examples" / "digits.yaml", steps=1)
        text = (self.folder / "run" / "config.yaml").read_text(encoding="utf-8")
        self.assertEqual(self.mistakes([("config.yaml", text)])["config.yaml"], [])

    def test_a_value_of_another_type_is_refused_by_program_and_schema(self):
        """Each option of each table with a value that it cannot take, in a configuration that is good otherwise."""
        wrong = {"whole number": "many", "whole numbers": "many", "number": "much", "numbers": "much", "boolean": "perhaps",
                 "number or schedule": [1, 2], "text": {"a": 1}, "texts": {"a": 1}}
        documents = []
        for heading, rows in option_sweep.tables(PROGRAM).items():
            required = {name: option_sweep.REQUIRED[name] for name, _, is_required in rows
                        if is_required and option_sweep.REQUIRED.get(name) is not None}
            for name, kind, _ in rows:
                if kind not in wrong or heading == "Section cluster":
                    continue
                config = option_sweep.configuration(heading, {**required, name: wrong[kind]})
                if config is not None:
                    documents.append((f"{heading}, {name}", config))
        self.assertGreater(len(documents), 400)
        found = self.mistakes(documents)
        self.assertEqual([name for name, messages in found.items() if not messages], [])
        # That the program refuses them is the same reader for all options: one of each kind of table.
        seen = set()
        for name, config in documents:
            kind = name.split(" ")[0]
            if kind not in seen:
                seen.add(kind)
                path = self.folder / "wrong.yaml"
                path.write_text(to_yaml(config), encoding="utf-8")
                self.assertEqual(self.start("check", path).wait().code, 2, name)
        self.assertGreater(len(seen), 8)

    def test_the_same_configurations_with_good_values_are_valid(self):
        documents = []
        for heading, rows in option_sweep.tables(PROGRAM).items():
            required = {name: option_sweep.REQUIRED[name] for name, _, is_required in rows
                        if is_required and option_sweep.REQUIRED.get(name) is not None}
            if all(not is_required or name in required for name, _, is_required in rows):
                config = option_sweep.configuration(heading, required)
                if config is not None:
                    documents.append((heading, config))
        self.assertGreater(len(documents), 100)
        self.assertEqual({name: messages for name, messages in self.mistakes(documents).items() if messages}, {})

    def test_broken_configurations(self):
        good = {"data": {"format": "csv", "path": "d.csv", "shape": [4]}, "model": {"layers": [{"dense": {"units": 2}}]},
                "optimizer": "adam", "train": {"batch_size": 8, "epochs": 2}}
        good_layers = {**good, "model": {"blocks": {"two": {"parameters": {"n": 2}, "layers": [{"dense": {"units": "$n"}}]}},
                                         "layers": [{"two": {"n": 3}}, "resnet20", {"repeat": {"times": 2, "layers": ["relu"]}}]}}
        self.assertEqual(self.mistakes([("good", good), ("layers", good_layers)]), {"good": [], "layers": []})
        broken = {
            "a misspelt section": {**good, "trian": {}},
            "a misspelt key": {**good, "train": {"batchsize": 8}},
            "a choice": {**good, "comm": {"reduction": "tre"}},
            "out of range": {**good, "checkpoint": {"keep": -1}},
            "no map": {**good, "eval": 3},
            "another choice": {**good, "precision": {"compute": "bfloat15"}},
            "missing batch_size": {**good, "train": {"epochs": 2}},
            "missing train": {key: value for key, value in good.items() if key != "train"},
            "a text for a number": {**good, "train": {"batch_size": 8, "epochs": "ten"}},
            "a layer of Keras": {**good, "model": {"layers": [{"Conv2D": {"filters": 4, "kernel": 3}}]}},
            "an option of Keras": {**good, "model": {"layers": [{"dense": {"units": 2, "activation": "relu"}}]}},
            "a rate above 1": {**good, "model": {"layers": [{"dropout": {"rate": 2}}, {"dense": {"units": 2}}]}},
            "a layer without its options": {**good, "model": {"layers": ["dense"]}},
            "two layers in one item": {**good, "model": {"layers": [{"dense": {"units": 2}, "relu": {}}]}},
            "an unknown rule": {**good, "optimizer": "adamx"},
            "an unknown reader": {**good, "data": {"format": "parquet", "path": "d"}},
            "an option of another reader": {**good, "data": {"format": "csv", "path": "d.csv", "channels": 3}},
            "a wrong option of eval": {**good, "data": {"format": "csv", "path": "d.csv", "eval": {"row": [0, 1]}}},
            "an unknown loss": {**good, "model": {"layers": [{"dense": {"units": 2}}], "loss": "mse"}},
            "an unknown hook": {**good, "hooks": ["early_stopping"]},
            "an unknown metric": {**good, "eval": {"metrics": ["topk"]}},
            "a schedule without its options": {**good, "optimizer": {"adam": {"learning_rate": {"cosine_decay": {}}}}},
            "null": {**good, "train": {"batch_size": None, "epochs": 2}},
        }
        found = self.mistakes(list(broken.items()))
        self.assertEqual([name for name, messages in found.items() if not messages], [])
        path = self.folder / "broken.yaml"
        for name, config in broken.items():
            path.write_text(to_yaml(config), encoding="utf-8")
            self.assertEqual(self.start("check", path).wait().code, 2, name)

    def test_what_an_included_file_gives_is_not_missed(self):
        part = {"include": "base.yaml", "train": {"epochs": 2}}
        self.assertEqual(self.mistakes([("part", part)])["part"], [])
        self.assertNotEqual(self.mistakes([("part", {"train": {"epochs": 2}})])["part"], [])
        self.assertNotEqual(self.mistakes([("part", {**part, "include": {"a": 1}})])["part"], [])

    def test_variables_of_the_environment_stand_for_values(self):
        config = {"include": "base.yaml", "seed": "${SEED:-1}", "comm": {"overlap": "${OVERLAP:-true}", "reduction": "${R:-tree}"}}
        self.assertEqual(self.mistakes([("variables", config)])["variables"], [])

    def test_with_plugins_the_sections_are_checked_by_name_alone(self):
        config = {"plugins": ["libmine.so"], "model": {"layers": ["mine"]}, "train": {}}
        self.assertEqual(self.mistakes([("plugin", config)])["plugin"], [])
        self.assertNotEqual(self.mistakes([("misspelt", {**config, "trian": {}})])["misspelt"], [])


if __name__ == "__main__":
    main()
