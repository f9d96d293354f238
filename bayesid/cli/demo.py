"""bayesid demo: simulate a log of a known robot, identify it, and count how often the intervals hold the truth."""

from __future__ import annotations

from bayesid.cli.options import Progress, add_common, show_warnings

RECIPE = "ur16e_synthetic"


def add_arguments(parser):
    add_common(parser)
    parser.set_defaults(out="bayesid-demo")


def run(args):
    import dataclasses

    import numpy as np

    from bayesid.cli.identify import finish
    from bayesid.cli.options import data_part
    from bayesid.logs.registry import recipe
    from bayesid.regression import identify
    from bayesid.signals import samples_from_log
    from bayesid.simulation.recipe import follow

    show_warnings(args.quiet)
    progress = Progress(args.quiet)
    progress.stage("simulating a UR16e with Stribeck friction and autocorrelated torque noise", "read")
    how = recipe(RECIPE)
    seed = how["recipe"]["seed"] + args.seed
    known = follow(how, seed=seed)
    other = follow(how, seed=seed + 1000, motion="reversed")
    runs = [samples_from_log(known.log)]
    held_out = [samples_from_log(other.log)]
    progress.stage("identifying", "solve")
    found = identify(known.model, runs, gains=known.drive_gains, validation=held_out, seed=args.seed)
    truth = known.model.base.project(known.truth)
    low, high = found.unconstrained.interval(0.95).T
    inside = (low <= truth) & (truth <= high)
    known_values = dict(zip(known.model.names, known.truth.tolist())) | dict(zip(found.base.names, truth.tolist()))
    found = dataclasses.replace(
        found,
        **{
            part: dataclasses.replace(estimate, meta={**estimate.meta, "truth": {n: known_values[n] for n in estimate.names}})
            for part, estimate in (("estimate", found.estimate), ("base", found.base))
        },
    )
    extra = {
        "command": "demo",
        "truth": dict(zip(found.unconstrained.names, truth.tolist())),
        "true_parameters_inside_95": float(np.mean(inside)),
    }
    status = finish(args, found, data_part([known.log], runs), progress, extra)
    if not args.json:
        print(
            f"\nThe simulated robot's true base parameters lie inside their 95 % intervals in {inside.sum()} of "
            f"{len(inside)} cases ({np.mean(inside):.1%})."
        )
        print(f"Open {args.out}/report.html to see the fit.")
    return status
