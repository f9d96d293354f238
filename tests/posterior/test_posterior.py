import warnings

import arviz as az
import numpy as np
import pytest

from bayesid.errors import DataError, ResultError
from bayesid.models import Model
from bayesid.posterior import NUTS, Laplace, coverage, infer
from bayesid.results import Estimate
from bayesid.robots import load_robot, read_urdf


@pytest.fixture(scope="module")
def found(arm, run):
    return infer(arm, run, method=NUTS(chains=2, warmup=150, draws=400))


def test_chains_can_be_believed(found):
    assert found.diagnostics.divergences == 0
    assert found.diagnostics.max_rhat < 1.05
    assert found.min_eigenvalues().min() > 0


def test_truth_lies_inside_of_wide_intervals(found, arm, truth):
    interval = found.base_estimate().interval(0.999)
    true = arm.base.project(truth)
    assert np.all((interval[:, 0] < true) & (true < interval[:, 1]))


def test_contraction_tells_data_from_prior(found, arm):
    contraction = dict(zip(arm.names, found.contraction()))
    assert contraction["joint1.viscous"] > 0.9
    # A link's height above a vertical plane of motion has no effect on any torque.
    assert abs(contraction[f"{arm.robot.link_names[0]}.Ixx"]) < 0.4


def test_parameters_known_only_together_are_grouped(found, arm):
    groups = found.correlated_groups(0.7)
    correlation = np.corrcoef(found.flat.T)
    for group in groups:
        at = [arm.names.index(name) for name in group]
        others = np.abs(correlation[np.ix_(at, at)]) - np.eye(len(at))
        assert np.all(others.max(axis=1) > 0.7)
    assert groups


def test_arviz_object_holds_all_groups_with_names_and_units(found, arm, tmp_path):
    data = found.to_arviz()
    groups = data.groups() if callable(data.groups) else data.groups
    for group in ("posterior", "prior", "posterior_predictive", "sample_stats", "observed_data", "log_likelihood"):
        assert f"/{group}" in {f"/{name.lstrip('/')}" for name in groups}
    posterior = data["posterior"]
    assert list(posterior["joint"].values) == list(arm.robot.joint_names)
    assert list(posterior["link"].values) == list(arm.robot.link_names)
    assert posterior["viscous"].attrs["units"] == "N m s/rad"
    drawn = posterior["viscous"].sel(joint="joint2").values
    np.testing.assert_array_equal(drawn, found.draws[..., arm.names.index("joint2.viscous")])
    found.save_netcdf(tmp_path / "posterior.nc")
    again = az.from_netcdf(str(tmp_path / "posterior.nc"))
    np.testing.assert_allclose(again["posterior"]["parameters"].values, found.draws)


def test_estimate_survives_saving_and_predicts_the_same(found, run, tmp_path):
    estimate = found.estimate()
    estimate.save(tmp_path / "estimate.json")
    again = Estimate.load(tmp_path / "estimate.json")
    part = run.select(slice(0, 200))
    np.testing.assert_allclose(again.predict(part, 0.9).upper, estimate.predict(part, 0.9).upper)


def test_band_holds_what_it_says_on_a_new_motion(found, arm, truth, simulate):
    shares = coverage(found.estimate(), simulate(arm, truth, samples=3000, correlation=0.5, seed=8), 0.9)
    np.testing.assert_allclose(shares["moving"], 0.9, atol=0.04)


def test_standing_still_widens_the_band_by_dry_friction(found, arm, truth, simulate):
    run = simulate(arm, truth, samples=200, seed=4)
    still = run.replace(qd=np.zeros_like(run.qd), moving=np.zeros_like(run.moving))
    estimate = found.estimate()
    width = lambda band: (band.upper - band.lower).mean(axis=0)  # noqa: E731
    # 90 % of a uniform distribution over +-1.15 times 3 N m.
    assert np.all(width(estimate.predict(still, 0.9)) > 0.9 * 2 * 1.15 * 2.7)
    assert np.all(width(estimate.predict(run, 0.9)) < 0.5 * width(estimate.predict(still, 0.9)))


@pytest.mark.parametrize(("kind", "suffix"), [("urdf", "urdf"), ("mjcf", "xml")])
def test_robots_of_the_posterior_are_written_and_differ(found, tmp_path, kind, suffix):
    paths = found.export_samples(tmp_path / kind, 3, kind)
    assert [p.suffix for p in paths] == [f".{suffix}"] * 3
    assert len({p.read_text() for p in paths}) == 3
    if kind == "urdf":
        robot = read_urdf(paths[0])
        masses = {draw[0] for draw in found.flat}
        assert any(abs(robot.inertials[0, 0] - m) < 1e-9 * m for m in masses)
    with pytest.raises(ResultError, match="urdf or mjcf"):
        found.export_samples(tmp_path, 1, "sdf")


def test_bad_input_is_refused_in_one_line(arm, run):
    broken = run.effort.copy()
    broken[7, 1] = np.nan
    with pytest.raises(DataError, match="sample 8, joint 2: effort"):
        infer(arm, run.replace(effort=broken), method=Laplace(100))
    with pytest.raises(DataError, match="unknown likelihood"):
        infer(arm, run, likelihood="gaussian")
    with pytest.raises(DataError, match="2 joints"):
        infer(Model(load_robot("ur10e")), run)


def test_poor_excitation_is_saved_by_the_prior(arm, simulate):
    """Held-out error at least three times below that of ordinary least squares (median of eight logs)."""
    from bayesid.posterior import Target, Wishart, autoregressive
    from bayesid.regression import Observations, ols

    ratios = []
    prior = Wishart(12.0).of(arm)
    vivid = simulate(arm, arm.nominal, samples=500, seed=77)
    columns = arm.regressor(vivid.q, vivid.qd, vivid.qdd)[:, :, arm.base.independent]
    for seed in range(8):
        truth = prior.sample(seed, 1)[0]
        run = simulate(arm, truth, samples=150, noise=2.0, correlation=0.95, seed=seed, amplitude=0.05)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            observations = Observations(arm, (run,))
            center = arm.base.project(Target(prior, autoregressive(observations, 1)).center())
        true = arm.base.project(truth)
        error = [np.sqrt(np.mean((columns @ (b - true)) ** 2)) for b in (ols(observations).beta, center)]
        ratios.append(error[0] / error[1])
    assert np.median(ratios) > 3.0


def test_arviz_compares_models_by_instants_at_which_all_joints_move(arm, run):
    still = run.replace(moving=run.moving & (np.arange(len(run)) > 200)[:, None])
    data = infer(arm, still, method=Laplace(200)).to_arviz()
    density = np.asarray(data["log_likelihood"]["torque"])
    assert np.all(density.std(axis=(0, 1)) > 0)
    assert density.shape[2] == len(data["observed_data"]["torque"]) == still.moving.all(axis=1).sum()
