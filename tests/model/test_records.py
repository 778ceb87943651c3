"""Records: what pre-tabular methods take and give."""

import numpy as np
import pytest

from lustrum.model import Dataset, InputError, Records

DESCRIPTION = {
    "dataset": {"name": "people", "identifiers": ["household"]},
    "variables": [
        {"name": "area", "codes": ["a", "b", "c"]},
        {"name": "sex", "codes": ["m", "f"]},
    ],
}


def records() -> Records:
    return Records(
        Dataset.from_mapping(DESCRIPTION),
        codes={"area": np.array([0, 1, 2], np.uint8), "sex": np.array([0, 1, 0], np.uint8)},
        ids={"household": np.array([7, 7, 8])},
        keys=np.array([1, 2, 3], np.uint64),
    )


def test_nothing_of_a_record_is_in_its_repr() -> None:
    assert repr(records()) == "Records('people')"


def test_columns_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        records().codes["area"][0] = 1


def test_new_codes_keep_their_type_and_must_be_in_the_code_list() -> None:
    changed = records().with_codes(area=np.array([2, 2, 2]))
    assert changed.codes["area"].dtype == np.uint8
    assert changed.codes["area"].tolist() == [2, 2, 2]
    with pytest.raises(InputError, match="outside its code list"):
        records().with_codes(sex=np.array([0, 2, 0]))


def test_some_records_keep_all_their_columns() -> None:
    some = records().take(np.array([True, False, True]))
    assert len(some) == 2
    assert some.ids["household"].tolist() == [7, 8]
    assert some.keys is not None
    assert some.keys.tolist() == [1, 3]


def test_columns_of_other_lengths_or_missing_ones_are_refused() -> None:
    good = records()
    with pytest.raises(InputError, match="differ in length"):
        Records(good.dataset, {"area": good.codes["area"], "sex": good.codes["sex"][:2]})
    with pytest.raises(InputError, match="no column 'sex'"):
        Records(good.dataset, {"area": good.codes["area"]})
