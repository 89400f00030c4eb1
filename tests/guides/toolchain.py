# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles and links a few files the way that the build does, without building anything else.

A file is compiled with the command of the file that it replaces, or of a neighbour in its folder. Objects go before
the build's libraries: a library's member that they replace is then not linked.
"""
import json
import os
import pathlib
import shlex
import subprocess


def run(command, cwd):
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))}\nended with {result.returncode}:\n"
                             f"{result.stdout}{result.stderr}")
    return result.stdout


def level_of(words):
    """The instruction-set level that a command compiles for; empty: none in particular."""
    return next((word for word in words if word.startswith("-DLOCKSTEP_ISA=")), "")


class Toolchain:
    """Compiles files of `scratch`, which mirrors the repository, against `source` and `build`."""

    def __init__(self, source, build, scratch):
        self.source, self.build, self.scratch = source, build, scratch
        self.launcher = os.environ["LOCKSTEP_COMPILER_LAUNCHER"].split()
        self.commands = {}  # by file, relative to the source
        for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
            file = pathlib.Path(entry["file"])
            words = shlex.split(entry["command"])
            # A CUDA file is compiled as C++ for the emulated GPU of the tests; nvcc's commands are left alone.
            if file.is_relative_to(source) and (file.suffix == ".cpp" or "c++" in words):
                self.commands.setdefault(str(file.relative_to(source)), []).append(words)

    def commands_for(self, path):
        """Those of the file itself, one per instruction-set level; or that of the first other file in its folder."""
        if path in self.commands:
            return list({level_of(words): words for words in self.commands[path]}.values())
        folder = os.path.dirname(path)
        for known in sorted(self.commands):
            if os.path.dirname(known) == folder and known.endswith(".cpp"):
                return self.commands[known][:1]
        raise AssertionError(f"{path}: nothing in {folder} is compiled")

    def compile(self, path, like=None):
        """The objects of scratch/path, or of that file of the source. Headers in scratch/src come before the build's.
        `like`: whose command to take. Not optimised, which takes half the time; but for instruction-set levels."""
        file = self.scratch / path if (self.scratch / path).exists() else self.source / path
        objects = []
        for i, words in enumerate(self.commands_for(like or path)):
            target = self.scratch / "objects" / f"{path.replace('/', '__')}.{i}.o"
            target.parent.mkdir(exist_ok=True)
            words = list(words)
            words[words.index("-o") + 1] = str(target)
            words[words.index("-c") + 1] = str(file)
            includes = [f"-I{self.scratch}/src", f"-I{self.scratch}/tests", f"-I{self.source}/tests", f"-I{self.source}/include",
                        f"-iquote{self.source / os.path.dirname(path)}"]
            # Where a precompiled header does not fit the other options, the header is read.
            includes.append(f"-idirafter{self.source / ('tests/support' if path.startswith('tests/') else 'cmake')}")
            quick = [] if level_of(words) else ["-O0", "-Wno-invalid-pch"]
            run([*self.launcher, words[0], *includes, *words[1:], *quick], self.build)
            objects.append(str(target))
        return objects

    def link_command(self, target):
        """How the build links a program, and in which folder."""
        target = os.path.relpath(target, self.build)
        if (self.build / "build.ninja").exists():
            ninja = os.environ["LOCKSTEP_MAKE_PROGRAM"]
            last = run([ninja, "-C", str(self.build), "-t", "commands", target], self.build).splitlines()[-1]
            return shlex.split(next(part for part in last.split("&&") if " -o " in part)), self.build
        for script in self.build.rglob("link.txt"):
            words = shlex.split(script.read_text(encoding="utf-8").splitlines()[0])
            folder = script.parent.parent.parent
            if "-o" in words and (folder / words[words.index("-o") + 1]).resolve() == (self.build / target).resolve():
                return words, folder
        raise AssertionError(f"the build does not link {target}")

    def link(self, name, objects, like):
        """scratch/name, linked like the build's program `like` but with other objects."""
        words, folder = self.link_command(like)
        place = words.index("-o")
        before, rest = ([word for word in part if not word.endswith(".o")] for part in
                        (words[:place], words[place + 2:]))
        run([*before, *objects, "-o", str(self.scratch / name), *rest], folder)
        return self.scratch / name

    def plugin(self, path):
        """A shared object of scratch/path, compiled like the example of a plugin."""
        example = "examples/hook_plugin/heartbeat.cpp"
        words = self.commands_for(example)[0]
        sanitize = [word for word in words if word.startswith("-fsanitize")]
        target = (self.scratch / path).with_suffix(".so")
        run([words[0], "-shared", *sanitize, *self.compile(path, like=example), "-o", str(target)], self.scratch)
        return target
