"""The page of a result: what result.json holds, in tables that can be read."""

import pytest

from bayesid.report.document import diagnostics_text, document_page, held_out_table, interval_text, share

DIAGNOSTICS = {"divergences": 1, "max_rhat": 1.0023, "min_ess_bulk": 512.3, "min_ess_tail": 433.9}
HELD_OUT = {
    "path": "/data/logs/other.csv",
    "rms": [0.512, 1.25],
    "nrmse": [0.05, None],
    "coverage90_moving": [0.91, 0.885],
    "coverage90_still": [None, 0.75],
}
POSTERIOR = {
    "bayesid": "0.1.0",
    "command": "posterior",
    "robot": "two_link",
    "joints": ["joint1", "joint2"],
    "parameters": [],
    "validation": [HELD_OUT],
    "diagnostics": DIAGNOSTICS,
    "problems": ["1 divergent transition"],
    "warnings": [],
    "prior": {"conflicts": ["the data of link 'link2' contradict its nominal"]},
    "friction_comparison": {
        "laws": ["viscous", "coulomb"],
        "elpd": [[-30.0, None], [-20.0, None]],
        "difference": [[-10.0, None], [0.0, None]],
        "standard_error": [[2.5, None], [0.0, None]],
        "reason": "coulomb: simplest",
    },
}


def test_a_posteriors_page_shows_fit_diagnostics_conflicts_and_friction():
    page = document_page(POSTERIOR)
    for words in (
        "Held out: other.csv",
        "<td>joint1</td><td>0.512</td><td>5.0 %</td><td>91 %</td><td>-</td>",
        "1 divergence, R-hat 1.002, effective draws 512 (bulk) 434 (tail)",
        "contradict its nominal",
        "<td>viscous</td><td>-10.0 (2.5)</td><td>-</td>",
        "Problem: 1 divergent transition",
        "nats",
    ):
        assert words in page
    assert page.index("<td>coulomb</td>") < page.index("<td>viscous</td>")
    assert "/data/logs" not in page


def test_a_posterior_without_chains_has_no_section_of_them():
    assert "Diagnostics of the chains" not in document_page({**POSTERIOR, "diagnostics": None})


def test_held_out_rows_follow_the_joints():
    head, rows = held_out_table(("a", "b"), HELD_OUT)
    assert rows == [("a", "0.512", "5.0 %", "91 %", "-"), ("b", "1.25", "-", "88 %", "75 %")]
    assert len(head) == len(rows[0])


@pytest.mark.parametrize(
    ("interval", "text"),
    [([3e-10, 0.8], "0 .. 0.8"), ([-0.8, -3e-10], "-0.8 .. 0"), ([3e-10, 5e-10], "3e-10 .. 5e-10"), ([None, 1.0], "- .. 1")],
)
def test_an_end_at_a_bound_is_zero(interval, text):
    assert interval_text({"interval95": interval}) == text


def test_shares_and_counts_in_words():
    assert [share(v, 0) for v in (None, float("nan"), -0.001, 0.5)] == ["-", "-", "0 %", "50 %"]
    assert diagnostics_text({**DIAGNOSTICS, "divergences": 0}).startswith("0 divergences")
