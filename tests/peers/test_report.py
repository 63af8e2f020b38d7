"""What was measured is told as it was: the round that counts, against the best peer and against the requests alone."""

from bench.peers.alone import ALONE, Requests
from bench.peers.competition import Competition, Plan, Standing
from bench.peers.contestants import CONTESTANTS
from bench.peers.report import as_json, as_table
from bench.peers.trial import Trial

OURS, PEERS = ALONE


def standing(name: str, seconds: float) -> Standing:
    contestant = next(each for each in CONTESTANTS if each.name == name)
    trial = Trial(contestant=name, set_up={"concurrency": 50}, operations=100, seconds=seconds)
    return Standing(contestant=contestant, python="", sweep=[trial], rounds=[trial])


def requests(name: str, seconds: float) -> Requests:
    return Requests(name=name, operations=100, seconds=seconds, client_cpu_us=700 + seconds, service_cpu_us=300)


COMPETITION = Competition(
    plan=Plan(operations=100, sweep_operations=100, rounds=3),
    standings=[standing("coatcheck", 2.0), standing("coatcheck, delivering", 5.0), standing("pgqueuer", 1.0)],
    floors=[],
    requests=[
        *(requests(OURS.name, seconds) for seconds in (0.9, 0.5, 0.8)),
        *(requests(PEERS.name, seconds) for seconds in (0.4, 0.5, 0.2)),
    ],
)


def test_the_requests_alone_are_bounds_below_the_contestants() -> None:
    lines = as_table(COMPETITION, {}, {}).splitlines()
    names = [line.split("  ")[0] for line in lines[1:6]]
    assert names == ["pgqueuer", "coatcheck", "coatcheck, delivering", OURS.name, PEERS.name]
    assert lines[4].removeprefix(OURS.name).split() == ["125", "111-200", "1.25", "701"]
    assert lines[5].removeprefix(PEERS.name).split() == ["250", "200-500", "2.50", "700"]


def test_a_contestant_is_told_against_the_requests_that_it_makes() -> None:
    told = [line for line in as_table(COMPETITION, {}, {}).splitlines() if "against its requests alone" in line]
    # who delivers makes one more
    assert told == ["coatcheck against its requests alone: 0.40", "pgqueuer against its requests alone: 0.40"]


def test_programs_are_told_of_every_round() -> None:
    found = as_json(COMPETITION, {}, {})["requests_alone"]
    assert [(each["name"], round(each["per_second"]), each["vs_best_peer"]) for each in found] == [
        (OURS.name, 111, 1.111),
        (OURS.name, 200, 2.0),
        (OURS.name, 125, 1.25),
        (PEERS.name, 250, 2.5),
        (PEERS.name, 200, 2.0),
        (PEERS.name, 500, 5.0),
    ]
