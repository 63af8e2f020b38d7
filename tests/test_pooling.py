"""What is left out behind a pooler is there to be left out."""

from pathlib import Path

import pytest

from pooling import LEFT_OUT

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("entry", LEFT_OUT)
def test_whatever_is_left_out_is_a_test_that_exists(entry: str) -> None:
    file, _, rest = entry.partition("::")
    assert f"def {rest.partition('[')[0]}" in (ROOT / file).read_text()
