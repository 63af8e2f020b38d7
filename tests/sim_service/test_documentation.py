"""docs/simulator.md says of every fault exactly what the catalogue says, and its script is one that the service takes."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from coatcheck.sim import Kind, Script, ServiceSettings, ThreadedService
from coatcheck.sim.catalogue import described
from coatcheck.sim.course import COURSE_CHECKS

PAGE = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_its_row(kind: Kind) -> None:
    assert described(kind) in PAGE.splitlines()


@pytest.mark.parametrize("name", [*COURSE_CHECKS, *(field.name for field in fields(ServiceSettings))])
def test_every_setting_of_service_and_job_is_named(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_the_script_on_the_page_is_taken(sim: ThreadedService) -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    script = Script.parse(json.loads(shown))
    sim.script(script)
    assert (len(script.rules), len(script.mix)) == (4, 4)
