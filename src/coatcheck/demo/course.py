"""What happens between the first order and the last: the shop takes orders while workers work, one of them is killed, all come to an end."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from coatcheck.core.operation import OperationId
from coatcheck.demo.crew import Crew
from coatcheck.demo.evidence import Told
from coatcheck.demo.orders import Order
from coatcheck.demo.progress import Progress
from coatcheck.demo.shop import Placed, Shop
from coatcheck.demo.strike import Strike, Striker
from coatcheck.seams import Seams
from coatcheck.sim import SimulatedService
from coatcheck.store.db import Database

PLACES = (1, 2)
_FIRST_ORDERS = 10
"""Orders that are there before a worker is, so that none finds nothing to do."""
_LOOK_EVERY_S = 0.02


@dataclass(slots=True, kw_only=True)
class Course:
    """One course. `left` is the order whose transaction is rolled back."""

    orders: Sequence[Order]
    left: Order
    workers: Crew
    service: SimulatedService
    shop: Shop
    store: Database
    progress: Progress
    seams: Seams
    _placed: list[Placed] = field(default_factory=list)
    _strikes: list[Strike] = field(default_factory=list)

    async def run(self) -> Told:
        """Run it. Raises `Failed` when a worker fails or the workers do not become idle in time."""
        await self.shop.open()
        await self._take(self.orders[:_FIRST_ORDERS])
        self.progress.say(
            f"{len(PLACES)} workers start, which takes a few seconds, and the shop takes {len(self.orders)} orders of three tenants"
        )
        for number in PLACES:
            self.workers.start(number)
        taking = asyncio.ensure_future(self._take_the_rest())
        try:
            await self._until_idle(taking)
            again = await taking
        finally:
            taking.cancel()
            await asyncio.wait([taking])
        return Told(
            placed=tuple(self._placed),
            left=(self.left.tenant_id, self.left.key),
            repeated=(self._placed[0].operation_id, again),
            strikes=tuple(self._strikes),
        )

    async def _take(self, orders: Sequence[Order]) -> None:
        for order in orders:
            self._placed.append(await self.shop.order(order))

    async def _take_the_rest(self) -> OperationId:
        """All other orders, one that is rolled back, and the first one again; what the last got."""
        await self._take(self.orders[_FIRST_ORDERS:])
        await self.shop.order_and_leave(self.left)
        return (await self.shop.order_again(self.orders[0])).operation_id

    async def _until_idle(self, taking: asyncio.Future[OperationId]) -> None:
        """Wait until no worker has anything left to do; meanwhile kill one in the middle of a POST."""
        patience = self.progress.patience()
        idle_early = False
        while (working := self.workers.working()) or not taking.done() or idle_early:
            if taking.done():
                taking.result()
            if not working:
                idle_early = not taking.done()
                if not idle_early:
                    self.workers.start(PLACES[0])
            await self._strike_once()
            await self.progress.show()
            patience.check()
            await self.seams.sleep(_LOOK_EVERY_S)
        await self.progress.show(every_s=0)
        self.progress.say("nothing is left to do: the books are compared, and somebody is called")

    async def _strike_once(self) -> None:
        """Until a kill has hit, look for somebody to be killed."""
        if any(strike.hit for strike in self._strikes):
            return
        operations = {each.order.specification.sha256_hex: each.operation_id for each in self._placed}
        striker = Striker(crew=self.workers, service=self.service, store=self.store, operations=operations)
        struck = await striker.strike()
        if struck is not None:
            self._strikes.append(struck)
            self.workers.start(struck.number)
            where = "in the middle of a POST" if struck.hit else "a moment after a POST"
            self.progress.say(f"worker {struck.number} is killed with SIGKILL {where}, and started anew")
