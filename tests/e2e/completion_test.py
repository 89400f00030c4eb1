# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Completion in real shells (bash and zsh on a terminal of their own, fish by its own interface), and the manual pages as man
renders them. A shell that is not installed is skipped."""
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import time
import unittest

from lockstep_run import PROGRAM, LockstepTest, main


class Terminal:
    """An interactive shell on a pseudo terminal."""

    def __init__(self, command, environment):
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, environment)

    def read(self, quiet=0.7, limit=20):
        """What appears until nothing appeared for `quiet` seconds."""
        text, end = b"", time.monotonic() + limit
        while time.monotonic() < end and select.select([self.file], [], [], quiet)[0]:
            try:
                text += os.read(self.file, 65536)
            except OSError:
                break
        plain = re.sub(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|[=>])|\x07", "", text.decode(errors="replace"))
        # What was erased by backspaces, as zsh does it.
        while "\b" in plain:
            plain = re.sub(r"[^\b]?\b", "", plain, count=1)
        return plain.replace("\r", "")

    def wait_for(self, mark, limit=30):
        text, end = "", time.monotonic() + limit
        while mark not in text:
            if time.monotonic() > end:
                raise AssertionError(f"no '{mark}' in {text!r}")
            text += self.read(quiet=0.3)
        return text

    def complete(self, line):
        """What is on the terminal after `line` and a tab, or two for a list; the line is discarded afterwards."""
        os.write(self.file, line.encode() + (b"\t\t" if line.endswith(" ") else b"\t"))
        text = self.read()
        os.write(self.file, b"\x15")  # kill the line
        self.read(quiet=0.3)
        return text

    def close(self):
        os.close(self.file)
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)


class CompletionTest(LockstepTest):
    def setUp(self):
        super().setUp()
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "lockstep").symlink_to(PROGRAM)
        (self.folder / "digits.yaml").write_text("", encoding="utf-8")
        self.environment = dict(os.environ, PATH=f"{self.folder}/bin:{os.environ['PATH']}", HOME=str(self.folder), TERM="dumb", PS1="% ",
                                LC_ALL="C.UTF-8", COLUMNS="200", LINES="50")

    def script(self, shell):
        path = self.folder / f"lockstep.{shell}"
        path.write_text(self.lockstep("completion", shell).out, encoding="utf-8")
        return path

    def terminal(self, shell, options, *commands):
        terminal = Terminal([shell, *options], self.environment)
        self.addCleanup(terminal.close)
        for command in (f"cd {self.folder}", *commands, f"source {self.script(shell)}", "echo rea''dy"):
            os.write(terminal.file, command.encode() + b"\n")
        terminal.wait_for("\nready")
        terminal.read(quiet=0.3)
        return terminal

    def check(self, complete):
        """The same in each shell: a command, its group, an option, its values, a key, a name, a file."""
        for line, expected in (("lockstep expl", "explain "), ("lockstep checkpoint ver", "verify "), ("lockstep train --accept", "--accept-changes"),
                               ("lockstep train --resume m", "must "), ("lockstep train --set train.batch_s", "train.batch_size="),
                               ("lockstep explain conv2d_tr", "conv2d_transpose "), ("lockstep completion fi", "fish "),
                               ("lockstep check dig", "digits.yaml "), ("lockstep export runs --format saf", "safetensors ")):
            self.assertIn(expected.strip(), complete(line), line)
        listed = complete("lockstep checkpoint ")
        for command in ("list", "verify", "diff", "average", "export"):
            self.assertIn(command, listed)
        self.assertNotIn("explain", listed)

    @unittest.skipUnless(shutil.which("bash"), "no bash")
    def test_bash(self):
        self.check(self.terminal("bash", ["--norc", "--noprofile", "-i"], "bind 'set enable-bracketed-paste off'").complete)

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh(self):
        self.check(self.terminal("zsh", ["-f", "-i"], "autoload -U compinit", "compinit -u -D").complete)

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish(self):
        script = self.script("fish")

        def complete(line):
            done = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"], cwd=self.folder, env=self.environment,
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            return done.stdout

        self.check(complete)

    def test_the_scripts_have_no_syntax_errors(self):
        for shell in ("bash", "zsh", "fish"):
            if shutil.which(shell):
                done = subprocess.run([shell, "-n", self.script(shell)], capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)


class ManualPages(LockstepTest):
    @unittest.skipUnless(shutil.which("man") and shutil.which("groff"), "no man or groff")
    def test_every_page_is_rendered_without_warnings(self):
        self.lockstep("man-page", "--output-dir", self.folder)
        pages = sorted(self.folder.glob("lockstep*.1"))
        self.assertGreater(len(pages), 25)
        commands = re.findall(r"^  (\w[\w-]*) {2,}", self.lockstep("--help").out.partition("Subcommands:")[2], re.M)
        names = {page.stem for page in pages}
        for command in commands:
            self.assertTrue(f"lockstep-{command}" in names or any(name.startswith(f"lockstep-{command}-") for name in names), command)
        for page in pages:
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", page], capture_output=True, text=True, timeout=60, check=False,
                                  env=dict(os.environ, MANPAGER="cat", MANWIDTH="100", LC_ALL="C.UTF-8"))
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)
            text = re.sub(r".\x08", "", done.stdout)
            for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "SEE ALSO"):
                self.assertIn(f"\n{heading}\n", text, page.name)
        train = pathlib.Path(self.folder / "lockstep-train.1").read_text(encoding="utf-8")
        self.assertIn("\\-\\-run\\-dir", train)
        self.assertIn(".SH EXAMPLES\n", train)


if __name__ == "__main__":
    main()
