"""Random kinematic trees and the two engines that answer for them: Pinocchio and MuJoCo."""

import jax
import mujoco
import numpy as np
import pinocchio
import pytest

from bayesid.robots import Frame, Joint, Link, Robot


def random_rotation(rng):
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.linalg.det(q)


def random_inertial(rng):
    """A solid of random extent: consistent, none of its parameters zero."""
    mass, com, spread = rng.uniform(0.5, 8.0), rng.normal(0, 0.2, 3), random_rotation(rng) * rng.uniform(0.05, 0.3, 3)
    second = mass * (spread @ spread.T + np.outer(com, com))
    moment = np.trace(second) * np.eye(3) - second
    return (mass, *(mass * com), *moment[np.triu_indices(3)])


@pytest.fixture(scope="package", autouse=True)
def quick_compilation():
    """Most of this folder's time would go into optimising code that runs a few times."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(scope="session")
def grow():
    return _grow


def _grow(seed, dof):
    """A random tree with revolute and prismatic joints, branches and fixed frames, its joints in depth-first order."""
    rng = np.random.default_rng(seed)
    joints, links, path = [], [], [-1]
    for i in range(dof):
        parent = path[-1] if rng.random() < 0.6 else path[rng.integers(len(path))]
        path = [*path[: path.index(parent) + 1], i]
        axis = rng.normal(size=3)
        joints.append(
            Joint(
                f"j{i}",
                "prismatic" if rng.random() < 0.3 else "revolute",
                parent,
                tuple(rng.normal(0, 0.4, 3)),
                tuple(random_rotation(rng).ravel()),
                tuple(axis / np.linalg.norm(axis)),
                rotor_inertia=rng.uniform(0.0, 0.5),
            )
        )
        links.append(Link(f"l{i}", random_inertial(rng)))
    frames = tuple(
        Frame(f"f{k}", parent, tuple(rng.normal(0, 0.3, 3)), tuple(random_rotation(rng).ravel()))
        for k, parent in enumerate((dof - 1, int(rng.integers(dof)), -1))
    )
    return Robot(f"tree{seed}", tuple(joints), tuple(links), frames, gravity=tuple(rng.normal(0, 6, 3)))


class Pinocchio:
    """The same robot in Pinocchio, built joint by joint."""

    parameter_order = np.array([0, 1, 2, 3, 4, 5, 7, 6, 8, 9])  # Pinocchio has Iyy before Ixz

    def __init__(self, robot):
        self.model = pinocchio.Model()
        self.model.gravity.linear = np.array(robot.gravity)
        for joint, link in zip(robot.joints, robot.links):
            kind = (
                pinocchio.JointModelPrismaticUnaligned if joint.kind == "prismatic" else pinocchio.JointModelRevoluteUnaligned
            )
            placement = pinocchio.SE3(np.reshape(joint.rotation, (3, 3)), np.array(joint.xyz))
            index = self.model.addJoint(joint.parent + 1, kind(np.array(joint.axis)), placement, joint.name)
            inertia = pinocchio.Inertia.FromDynamicParameters(np.array(link.inertial)[self.parameter_order])
            self.model.appendBodyToJoint(index, inertia, pinocchio.SE3.Identity())
        for frame in robot.frames:
            placement = pinocchio.SE3(np.reshape(frame.rotation, (3, 3)), np.array(frame.xyz))
            kind = pinocchio.FrameType.OP_FRAME
            self.model.addFrame(pinocchio.Frame(frame.name, frame.parent + 1, 0, placement, kind))
        self.model.armature = robot.rotor_inertias.copy()
        self.data = self.model.createData()

    def __getattr__(self, name):
        """Pinocchio's function of that name, on this model."""
        function = getattr(pinocchio, name)
        return lambda *arguments: np.array(function(self.model, self.data, *arguments))

    def mass_matrix(self, q):
        upper = np.triu(self.crba(q))
        return upper + np.triu(upper, 1).T

    def regressor(self, q, qd, qdd):
        raw = self.computeJointTorqueRegressor(q, qd, qdd).reshape(len(q), -1, 10)
        return raw[:, :, np.argsort(self.parameter_order)].reshape(len(q), -1)

    def frame(self, q, name):
        index = self.model.getFrameId(name)
        pinocchio.framesForwardKinematics(self.model, self.data, q)
        placement = self.data.oMf[index]
        jacobian = pinocchio.computeFrameJacobian(self.model, self.data, q, index, pinocchio.LOCAL_WORLD_ALIGNED)
        return placement.rotation.copy(), placement.translation.copy(), jacobian


@pytest.fixture(scope="session")
def in_pinocchio():
    return Pinocchio


class MuJoCo:
    """The same robot in MuJoCo, built body by body."""

    def __init__(self, robot):
        spec = mujoco.MjSpec()
        spec.compiler.balanceinertia = False
        spec.option.gravity = robot.gravity
        bodies = []
        for joint, link in zip(robot.joints, robot.links):
            parent = spec.worldbody if joint.parent < 0 else bodies[joint.parent]
            m, c, moment = link.inertial[0], np.array(link.inertial[1:4]) / link.inertial[0], link.inertial[4:]
            xx, xy, xz, yy, yz, zz = moment
            shift = m * (c @ c * np.eye(3) - np.outer(c, c))
            body = parent.add_body(
                name=link.name,
                pos=joint.xyz,
                quat=_quaternion(joint.rotation),
                mass=m,
                ipos=c,
                explicitinertial=True,
                fullinertia=np.array([xx, yy, zz, xy, xz, yz]) - np.append(np.diag(shift), shift[np.triu_indices(3, 1)]),
            )
            kind = mujoco.mjtJoint.mjJNT_SLIDE if joint.kind == "prismatic" else mujoco.mjtJoint.mjJNT_HINGE
            body.add_joint(name=joint.name, type=kind, axis=joint.axis, armature=joint.rotor_inertia)
            bodies.append(body)
        for frame in robot.frames:
            parent = spec.worldbody if frame.parent < 0 else bodies[frame.parent]
            parent.add_site(name=frame.name, pos=frame.xyz, quat=_quaternion(frame.rotation))
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self.order = np.array([self.model.joint(name).dofadr[0] for name in robot.joint_names])

    def set(self, q, qd):
        self.data.qpos[self.order], self.data.qvel[self.order] = q, qd
        mujoco.mj_forward(self.model, self.data)

    def inverse_dynamics(self, qdd):
        self.data.qacc[self.order] = qdd
        mujoco.mj_inverse(self.model, self.data)
        return self.data.qfrc_inverse[self.order].copy()

    def mass_matrix(self):
        full = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, full)
        return full[np.ix_(self.order, self.order)]

    def jacobian(self, site):
        rows = np.zeros((2, 3, self.model.nv))
        mujoco.mj_jacSite(self.model, self.data, rows[0], rows[1], self.model.site(site).id)
        return rows.reshape(6, -1)[:, self.order]


@pytest.fixture(scope="session")
def in_mujoco():
    return MuJoCo


def _quaternion(rotation):
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, np.array(rotation).ravel())
    return quaternion
