"""The animation, looked at in a real browser, and the stick figure and figures that it shows."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from bayesid.excitation import animation_html, write_animation, write_figures
from bayesid.excitation.animation import stick_figure
from bayesid.robots import load_robot

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="module")
def browser():
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    pytest.skip(f"no browser of {', '.join(BROWSERS)} on the PATH: apt-get install chromium")


def look(browser, page, *options):
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--virtual-time-budget=2500",
        *options,
    ]
    return subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=240, check=True).stdout


def test_stick_figure_of_the_arm_is_its_closed_form():
    robot = load_robot("two_link")
    q = np.random.default_rng(0).normal(size=(9, 2))
    points, segments = stick_figure(robot, q)
    elbow = 0.45 * np.stack([np.sin(q[:, 0]), -np.cos(q[:, 0])], axis=1)
    tip = elbow + 0.45 * np.stack([np.sin(q.sum(axis=1)), -np.cos(q.sum(axis=1))], axis=1)
    np.testing.assert_allclose(points[:, 2, :2], elbow, atol=1e-12)
    np.testing.assert_allclose(points[:, -1, :2], tip, atol=1e-12)
    assert (1, 2) in segments


def test_up_is_against_gravity_on_the_page(excitation):
    source = animation_html(excitation)
    data = json.loads(re.search(r'id="data">(.*?)</script>', source, re.S)[1])
    points = np.array(data["points"])
    q = np.array(data["q"])
    height = -0.45 * np.cos(q[:, 0]) - 0.45 * np.cos(q.sum(axis=1))
    np.testing.assert_allclose(points[:, -1, 2], height, atol=2e-3)
    np.testing.assert_allclose(points[:, 0], 0.0, atol=1e-12)


def test_page_plays_in_a_browser(browser, excitation, tmp_path):
    page = write_animation(excitation, tmp_path / "animation.html", floor=-0.5)
    source = page.read_text()
    assert not re.search(r"(src|href)=|https?://", source), "the page must not load anything"
    dom = look(browser, page, "--dump-dom")
    assert 'data-ready="yes"' in dom
    assert dom.count("<tr>") == 3
    frame = int(re.search(r'data-frame="(\d+)"', dom)[1])
    shown = float(re.search(r'<output id="clock">([\d.]+) s', dom)[1])
    data = json.loads(re.search(r'id="data">(.*?)</script>', source, re.S)[1])
    assert frame > 0, "the animation stands still"
    assert shown == pytest.approx(data["time"][frame], abs=0.01)


def test_page_draws_the_robot(browser, excitation, tmp_path):
    import matplotlib.image as image

    page = write_animation(excitation, tmp_path / "animation.html")
    shot = tmp_path / "shot.png"
    look(browser, page, f"--screenshot={shot}", "--window-size=900,800")
    pixels = image.imread(shot)[..., :3]
    blue = (pixels[..., 2] > 0.8) & (pixels[..., 0] < 0.4) & (pixels[..., 1] < 0.7)
    assert blue.sum() > 300, "no stick figure on the page"


def test_figures_are_written(excitation, tmp_path):
    files = write_figures(excitation, tmp_path)
    assert [f.name for f in files] == ["motion.svg", "path.svg"]
    for file in files:
        assert file.read_text().lstrip().startswith("<?xml")
