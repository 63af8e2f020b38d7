"""What the measuring of peers cannot do is told in a sentence."""

import subprocess
import sys

from bench.peers.environments import ROOT


def test_an_interpreter_that_is_none_is_refused_in_words() -> None:
    command = [sys.executable, "-m", "bench.peers", "--python", "nowhere"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "coatcheck: expected Python 3.12 or newer as --python, got 'nowhere'\nname another one\n"
