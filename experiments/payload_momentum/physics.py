"""The reference's simulation with MuJoCo as physics: a UR16e carries an object and a sensor at {R} reads the wrench."""

import tomllib
from pathlib import Path

import mujoco
import numpy as np

from bayesid.payload import ELBOW_UP, joint_motion, tool_motion
from bayesid.robots import load_robot

AXES = ("x", "y", "z")


def reference(path):
    """The reference's tables as read from its TOML file."""
    return tomllib.loads(Path(path).read_text(encoding="utf-8"))


def object_parameters(entry):
    """Mass, centre of mass (3,) and inertia (3, 3) about it of one object of the reference."""
    i = entry["inertia"]
    inertia = np.array([[i["xx"], i["xy"], i["xz"]], [i["xy"], i["yy"], i["yz"]], [i["xz"], i["yz"], i["zz"]]])
    return entry["mass"], np.array(entry["com"]), inertia


def arm_with_object(robot, mass, com, inertia, frame):
    """MuJoCo model of the robot's chain with an object fixed in `frame` and a force and torque sensor at its origin."""
    spec = mujoco.MjSpec()
    spec.option.gravity = robot.gravity
    bodies = []
    for i, (joint, parent) in enumerate(zip(robot.joints, robot.parents, strict=True)):
        under = spec.worldbody if parent < 0 else bodies[parent]
        body = under.add_body(name=f"link{i}", pos=joint.xyz, quat=_quaternion(np.reshape(joint.rotation, (3, 3))))
        body.add_joint(name=f"joint{i}", type=mujoco.mjtJoint.mjJNT_HINGE, axis=joint.axis)
        body.mass, body.inertia, body.explicitinertial = 1.0, [0.1, 0.1, 0.1], True
        bodies.append(body)
    at = robot.frame(frame)
    load = bodies[at.parent].add_body(name="object", pos=at.xyz, quat=_quaternion(np.reshape(at.rotation, (3, 3))))
    load.mass, load.ipos, load.explicitinertial = mass, com, True
    load.fullinertia = [inertia[0, 0], inertia[1, 1], inertia[2, 2], inertia[0, 1], inertia[0, 2], inertia[1, 2]]
    load.add_site(name="R")
    for name, kind in (
        ("force", mujoco.mjtSensor.mjSENS_FORCE),
        ("torque", mujoco.mjtSensor.mjSENS_TORQUE),
        ("gyro", mujoco.mjtSensor.mjSENS_GYRO),
    ):
        spec.add_sensor(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname="R")
    return spec.compile()


def ideal_record(robot, motion, mass, com, inertia, frame, start=ELBOW_UP):
    """Sensor motion, force (N, 3), moment (N, 3) and angular velocity (N, 3) without noise, at 1 kHz, along the axes of {R}."""
    joints = joint_motion(robot, motion, start, 1000.0, frame)
    model = arm_with_object(robot, mass, com, inertia, frame)
    data = mujoco.MjData(model)
    out = np.empty((len(joints), 9))
    for k in range(len(joints)):
        data.qpos[:], data.qvel[:], data.qacc[:] = joints.q[k], joints.qd[k], joints.qdd[k]
        mujoco.mj_inverse(model, data)
        out[k] = data.sensordata
    return motion.sensor_motion(1000.0), out[:, :3], out[:, 3:6], out[:, 6:]


def cases(tables):
    """(object name, parameters, range) of the nine noiseless simulations, largest range first."""
    robot = load_robot("ur16e")
    for name in ("object1", "object2", "object3"):
        for reach in (0.1, 0.05, 0.025):
            yield robot, name, object_parameters(tables[name]), reach


def simulate(robot, parameters, reach, frame="tool0", **options):
    """`ideal_record` of one case of the reference."""
    return ideal_record(robot, tool_motion(robot, reach, reach, frame=frame, **options), *parameters, frame)


def _quaternion(rotation):
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(rotation).ravel())
    return quaternion
