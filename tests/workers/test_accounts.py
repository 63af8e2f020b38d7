"""Until a credential was seen to work, dispatches of its account go one at a time; a service that does not answer holds nobody up for long."""

import asyncio

import pytest

from coatcheck.workers.accounts import Accounts

ACCOUNT = "genace"
NEVER_S = 3600.0


async def others_go_on(accounts: Accounts) -> bool:
    """Whether another dispatch gets its turn while one is under way, without waiting for it."""
    began = asyncio.Event()

    async def other() -> None:
        async with accounts.turn(ACCOUNT):
            began.set()

    async with accounts.turn(ACCOUNT):
        task = asyncio.ensure_future(other())
        for _ in range(10):
            await asyncio.sleep(0)
        went = began.is_set()
    await task
    return went


@pytest.mark.parametrize(
    ("answers", "together"),
    [
        ((), False),
        ((201,), True),
        ((500,), True),
        ((None,), False),
        ((401,), False),
        ((201, 403), False),
        ((402, 429), True),
    ],
)
def test_who_was_answered_without_a_denial_shows_that_the_credential_works(
    answers: tuple[int | None, ...], together: bool
) -> None:
    async def story() -> bool:
        accounts = Accounts(wait_s=NEVER_S)
        for status in answers:
            accounts.answered(ACCOUNT, status)
        return await others_go_on(accounts)

    assert asyncio.run(story()) is together


def test_accounts_do_not_wait_for_each_other() -> None:
    async def story() -> None:
        accounts = Accounts(wait_s=NEVER_S)
        async with accounts.turn("one"), accounts.turn("two"):
            pass

    asyncio.run(asyncio.wait_for(story(), timeout=10))


def test_an_answer_that_does_not_come_holds_nobody_up_for_long() -> None:
    async def story() -> None:
        accounts = Accounts(wait_s=0.01)
        async with accounts.turn(ACCOUNT):
            async with accounts.turn(ACCOUNT):
                pass
            assert accounts._alone[ACCOUNT].locked(), "who gave up waiting must not end another's turn"

    asyncio.run(asyncio.wait_for(story(), timeout=10))


def test_a_pause_ends_the_trust_until_the_next_answer() -> None:
    async def story() -> tuple[bool, bool, bool]:
        accounts = Accounts(wait_s=NEVER_S)
        accounts.answered(ACCOUNT, 201)
        before = await others_go_on(accounts)
        accounts.paused(ACCOUNT)
        after = await others_go_on(accounts)
        accounts.answered(ACCOUNT, 201)
        return before, after, await others_go_on(accounts)

    assert asyncio.run(story()) == (True, False, True)
