"""bayesid robots: list, show, project."""

from pathlib import Path


def add_arguments(parser):
    parser.description += " Without an action: the built-in robots."
    actions = parser.add_subparsers(dest="action", metavar="show NAME")
    show = actions.add_parser("show", help="tree, limits, inertials and consistency check of one robot")
    show.add_argument("robot", metavar="NAME", help="built-in name, or a URDF, MJCF or TOML file")
    show.add_argument("--project", metavar="FILE", help="write a URDF whose inertials are the nearest consistent ones")


def run(args):
    from bayesid.robots import load_robot
    from bayesid.robots.describe import builtin_report, robot_report

    if args.action is None:
        print(builtin_report())
        return 0
    robot = load_robot(args.robot)
    if args.project is not None:
        _project(robot, args)
    print(robot_report(robot))
    if args.project is not None:
        print(f"\nwrote {args.project} with the nearest consistent inertials")
    return 0


def _project(robot, args):
    from bayesid.errors import RobotError
    from bayesid.inertia import nearest_consistent
    from bayesid.robots import urdf_text

    path = Path(args.project)
    if path.suffix.lower() != ".urdf":
        raise RobotError(f"--project {args.project}: name a file that ends in .urdf")
    if path.exists() and Path(args.robot).exists() and path.samefile(args.robot):
        raise RobotError(f"--project {args.project}: is the robot's own file, name another")
    text = urdf_text(robot.with_inertials(nearest_consistent(robot.inertials)))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RobotError(f"--project {args.project}: cannot be written: {error.strerror}") from None
