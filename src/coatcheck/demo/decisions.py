"""The second act: a person decides what is uncertain, and workers do what follows from it, until nothing is uncertain any more."""

from dataclasses import dataclass

from coatcheck.demo.crew import Crew
from coatcheck.demo.person import Person, Verdict
from coatcheck.demo.progress import Progress
from coatcheck.seams import Seams

_PLACE = 1
_ROUNDS = 3
"""A POST that was authorised once more may lose its reply, too, if the machine is busy enough."""
_LOOK_EVERY_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """One second act, for which the workers of the first are there again: `verdicts = await Decisions(…).made()`."""

    person: Person
    workers: Crew
    progress: Progress
    seams: Seams

    async def made(self) -> tuple[Verdict, ...]:
        """Every decision. Raises `Failed` when a worker fails or the workers do not become idle in time."""
        verdicts: tuple[Verdict, ...] = ()
        for _ in range(_ROUNDS):
            if not (await self.progress.counted()).uncertain_count:
                break
            # A worker takes a moment to start, so it does that while the person decides.
            self.workers.start(_PLACE)
            verdicts = (*verdicts, *await self.person.decide())
            await self._until_done()
        self.progress.say("nothing is left to do or to decide: the books are compared again")
        return verdicts

    async def _until_done(self) -> None:
        """Wait until nothing is left; a worker that became idle just before a decision gets a successor."""
        patience = self.progress.patience()
        while (working := self.workers.working()) or not (await self.progress.counted()).is_done:
            if not working:
                self.workers.start(_PLACE)
            await self.progress.show()
            patience.check()
            await self.seams.sleep(_LOOK_EVERY_S)
