"""The registry: cards describe files by hash, mirrors and downloads are checked, nothing foreign is taken."""

import hashlib
import os

import pytest

from bayesid.errors import LogError
from bayesid.logs import load_schema, read_log, registry


@pytest.fixture(autouse=True)
def no_mirror(monkeypatch, tmp_path):
    monkeypatch.delenv("BAYESID_DATA", raising=False)
    monkeypatch.setenv("BAYESID_CACHE", str(tmp_path / "cache"))


def test_every_card_has_a_source_a_licence_and_hashes():
    assert set(registry.names()) >= {"ur10e_innopolis", "staubli_tx40", "ur10_unisa", "kinova_gen3", "irb120_faro"}
    for card in registry.cards():
        assert len(card.commit) == 40
        assert card.licence
        assert card.description
        assert card.repository.count("/") == 1
        assert card.schema is None or load_schema(card.schema)
        assert card.files
        assert all(len(f.sha256) == 64 and f.bytes > 0 and f.kind for f in card.files)
        assert len({f.path for f in card.files}) == len(card.files)


def test_mirror_holds_what_the_cards_say(data_root):
    for name in registry.names():
        paths = registry.fetch(name, data=data_root)
        assert [p.stat().st_size for p in paths] == [f.bytes for f in registry.card(name).files]


def test_rows_on_the_cards_are_those_of_the_files(data_root):
    card = registry.card("ur10e_innopolis")
    files = [f for f in card.files if f.window]
    assert len(files) == 9
    for file, path in zip(files, registry.fetch(card.name, [f.path for f in files], data=data_root)):
        log = read_log(path, card.schema)
        assert log.rows[1] == file.rows >= file.window[1]


def test_a_file_is_found_by_its_name_alone(data_root):
    (path,) = registry.fetch("ur10e_innopolis", ["ur-20_01_31-load.csv"], data=data_root)
    assert path.name == "ur-20_01_31-load.csv"
    with pytest.raises(LogError, match="no file 'other"):
        registry.fetch("ur10e_innopolis", ["other.csv"], data=data_root)


def made_source(tmp_path, card, content):
    """A folder laid out like the source, with one file's content."""
    file = next(f for f in card.files if f.download)
    path = tmp_path / "source" / card.commit / file.source_path
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return file, (tmp_path / "source").as_uri() + "/{commit}/{path}"


def test_download_is_verified_and_leaves_nothing_when_wrong(tmp_path):
    card = registry.card("ur10e_pushes")
    file, source = made_source(tmp_path, card, b"something else")
    with pytest.raises(LogError, match="not the file that data set 'ur10e_pushes' describes"):
        registry.fetch(card.name, [file.path], source=source)
    assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]


def test_download_is_kept_and_used_again(tmp_path, data_root):
    card = registry.card("ur10e_pushes")
    content = (data_root / card.name / "LICENSE").read_bytes()
    file, source = made_source(tmp_path, card, content)
    (path,) = registry.fetch(card.name, [file.path], source=source)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256
    assert registry.fetch(card.name, [file.path], source="file:///absent/{path}") == (path,)


def test_unreachable_source_and_mirror_only_files_say_what_to_do(tmp_path):
    with pytest.raises(LogError, match="cannot be downloaded"):
        registry.fetch("ur10e_pushes", ["LICENSE"], source=tmp_path.as_uri() + "/{path}")
    with pytest.raises(LogError, match="needs a local mirror"):
        registry.fetch("kinova_gen3", ["Trajectory1.csv.gz"])
    with pytest.raises(LogError, match="local mirror"):
        registry.fetch("kinova_gen3")


def test_tampered_mirror_and_missing_files_are_named(tmp_path):
    (tmp_path / "ur10e_pushes").mkdir()
    with pytest.raises(LogError, match="missing from the mirror"):
        registry.fetch("ur10e_pushes", ["LICENSE"], data=tmp_path)
    (tmp_path / "ur10e_pushes" / "LICENSE").write_text("mine")
    with pytest.raises(LogError, match="not the file"):
        registry.fetch("ur10e_pushes", ["LICENSE"], data=tmp_path)
    with pytest.raises(LogError, match="no such folder of recordings"):
        registry.fetch("ur10e_pushes", data=tmp_path / "absent")


def test_environment_names_the_mirror(data_root, monkeypatch):
    monkeypatch.setenv("BAYESID_DATA", os.fspath(data_root))
    (path,) = registry.fetch("ur10e_pushes", ["LICENSE"])
    assert path.parent == data_root / "ur10e_pushes"


def test_unknown_and_simulated_sets_are_told_apart():
    with pytest.raises(LogError, match="no data set 'ur99'"):
        registry.card("ur99")
    assert registry.recipes() == ("ur16e_synthetic",)
    with pytest.raises(LogError, match="simulated"):
        registry.card("ur16e_synthetic")
    with pytest.raises(LogError, match="no recipe"):
        registry.recipe("ur10e_pushes")


def test_recipe_stays_within_the_robots_limits_and_at_rest_at_both_ends():
    import numpy as np

    recipe = registry.recipe("ur16e_synthetic")["recipe"]
    from bayesid.robots import load_robot

    robot = load_robot("ur16e_extended")
    path = recipe["trajectory"]
    a, b, q0, period = np.array(path["a"]), np.array(path["b"]), np.array(path["q0"]), path["period_s"]
    w = 2 * np.pi / period * np.arange(1, a.shape[1] + 1)
    time = np.linspace(0, period, 2001)
    fourier = np.sin(np.outer(time, w)) @ (a / w).T - np.cos(np.outer(time, w)) @ (b / w).T
    ends = np.array([fourier[0], a.sum(1), (b * w).sum(1)])
    # The quintic that cancels value, slope and curvature at both ends, by its six conditions.
    rows = [[t**j, j * t ** max(j - 1, 0), j * (j - 1) * t ** max(j - 2, 0)] for t in (0.0, period) for j in range(6)]
    conditions = np.array(rows).reshape(2, 6, 3).transpose(0, 2, 1).reshape(6, 6)
    c = np.linalg.solve(conditions, -np.concatenate([ends, ends]))
    q = q0 + fourier + np.vander(time, 6, increasing=True) @ c
    qd = np.gradient(q, time, axis=0)
    np.testing.assert_allclose(q[[0, -1]], [q0, q0], atol=1e-9)
    assert np.abs(qd[[0, -1]]).max() < 1e-4
    assert np.all(np.abs(qd).max(0) < 0.95 * robot.limit("velocity"))
    assert np.all((q > robot.limit("lower")) & (q < robot.limit("upper")))
    assert np.abs(qd).max(0).min() > 0.2
