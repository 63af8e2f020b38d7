"""What a person sets for tenants and accounts: limits and pauses."""

from decimal import Decimal

from hypothesis import strategies as st
from hypothesis.stateful import rule

from coatcheck.seams import NO_FAULTS
from coatcheck.store.pauses import pause, resume
from stateful.compared import TENANTS, Compared
from store.ground import ACCOUNT


class Around(Compared):
    """See the module."""

    @rule(
        tenant=st.sampled_from(TENANTS),
        limit=st.sampled_from([None, None, 3, 7]),
        paused=st.sampled_from([False, False, True]),
    )
    def a_person_sets_limits(self, tenant: str, limit: int | None, *, paused: bool) -> None:
        """What a tenant may spend, and whether the account dispatches."""
        self.hands.ann.sql("update coatcheck.allowances set ceiling = %s where tenant_id = %s", limit, tenant)
        self.books.limits[tenant] = None if limit is None else Decimal(limit)
        if paused != self.books.is_paused:
            change = pause if paused else resume
            self.hands.ann.run(change(self.hands.ann.line, ACCOUNT, reason="the books", actor="eve", faults=NO_FAULTS))
            self.books.is_paused = paused
