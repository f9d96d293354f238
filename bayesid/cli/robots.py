"""bayesid robots: list, show, project."""

from pathlib import Path


def add_arguments(parser):
    actions = parser.add_subparsers(dest="action", metavar="show")
    show = actions.add_parser("show", help="tree, limits, inertials and consistency check of one robot")
    show.add_argument("robot", metavar="NAME", help="built-in name, or a URDF, MJCF or TOML file")
    show.add_argument("--project", metavar="FILE", help="write a URDF whose inertials are the nearest consistent ones")


def run(args):
    from bayesid.robots import load_robot, urdf_text
    from bayesid.robots.describe import builtin_report, robot_report

    if args.action is None:
        print(builtin_report())
        return 0
    robot = load_robot(args.robot)
    print(robot_report(robot))
    if args.project:
        from bayesid.inertia import nearest_consistent

        fixed = robot.with_inertials(nearest_consistent(robot.inertials))
        Path(args.project).write_text(urdf_text(fixed), encoding="utf-8")
        print(f"\nwrote {args.project} with the nearest consistent inertials")
    return 0
