"""The text form of ids: one spelling each, and everything else is no id."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.identity import made_at, operation_text, parse_operation_id
from coatcheck.core.operation import OperationId


@given(st.uuids())
def test_both_texts_lead_back_to_the_same_id(uuid: UUID) -> None:
    operation_id = OperationId(uuid)
    assert parse_operation_id(operation_text(operation_id)) == operation_id
    assert parse_operation_id(str(uuid)) == operation_id
    assert parse_operation_id(str(uuid).upper()) == operation_id


@given(st.tuples(st.uuids(), st.uuids()))
def test_texts_sort_as_their_ids_do(pair: tuple[UUID, UUID]) -> None:
    low, high = sorted(pair)
    assert operation_text(OperationId(low)) <= operation_text(OperationId(high))


def test_the_text_is_that_of_a_typeid() -> None:
    # The first two are valid.yml of the TypeID specification.
    assert operation_text(OperationId(UUID("0110c853-1d09-52d8-d73e-1194e95b5f19"))) == "op_0123456789abcdefghjkmnpqrs"
    assert operation_text(OperationId(UUID("01890a5d-ac96-774b-bcce-b302099a8057"))) == "op_01h455vb4pex5vsknk084sn02q"
    assert operation_text(OperationId(UUID(int=2**128 - 1))) == "op_7zzzzzzzzzzzzzzzzzzzzzzzzz"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "op_",
        "op_8zzzzzzzzzzzzzzzzzzzzzzzzz",
        "op_0123456789abcdefghjkmnpqr",
        "op_0123456789abcdefghjkmnpqrss",
        "op_0123456789ABCDEFGHJKMNPQRS",
        "op_0123456789abcdefghijklmnop",
        "OP_0123456789abcdefghjkmnpqrs",
        "job_0123456789abcdefghjkmnpqrs",
        "op_0123456789abcdefghjkmnpqrs\n",
        " op_0123456789abcdefghjkmnpqrs",
        "op_\u0660123456789abcdefghjkmnpqrs",
        "{01890a5d-ac96-774b-bcce-b302099a8057}",
        "urn:uuid:01890a5d-ac96-774b-bcce-b302099a8057",
        "01890a5dac96774bbcceb302099a8057",
        "01890a5d-ac96-774b-bcce-b302099a805",
        "op_\0",
        "'; drop table operations; --",
    ],
)
def test_what_does_not_spell_an_id_canonically_is_no_id(text: str) -> None:
    assert parse_operation_id(text) is None


def test_an_id_tells_when_it_was_made() -> None:
    """The example of RFC 9562, appendix A.6."""
    known = OperationId(UUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"))
    assert made_at(known) == datetime(2022, 2, 22, 19, 22, 22, tzinfo=UTC)
