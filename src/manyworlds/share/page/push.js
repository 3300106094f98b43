// Pushing bodies with the mouse or a finger: a spring from the grabbed point to the pointer.

import * as THREE from "../vendor/three.module.js";

const GROUPS = [1, 1, 1, 0, 0, 0];  // as drawn

export class Push {
  constructor(camera) {
    this.camera = camera;
    this.physics = null;
    this.apply = () => this.applyForce();
  }

  /** Push bodies of another world. */
  use(physics) {
    this.end();
    this.perturb?.delete();
    this.physics = physics;
    this.perturb = new physics.mujoco.MjvPerturb();
  }

  get active() {
    return this.pointer !== undefined;
  }

  /** Grab the body under a pointer; return whether there is one that moves. */
  begin(event) {
    const { mujoco, model, data } = this.physics;
    const { origin, direction } = this.camera.ray(event);
    const geom = new mujoco.IntBuffer(1);
    const distance = mujoco.mj_ray(
      model, data, origin.toArray(), direction.toArray(), GROUPS, true, -1, geom, null);
    const [hit] = geom.GetView();
    geom.delete();
    if (distance < 0) return false;
    const body = model.geom_bodyid[hit];
    if (model.body_weldid[body] === 0) return false;
    const point = origin.clone().addScaledVector(direction, distance);
    // The point is pulled in the plane that faces the camera.
    this.plane = new THREE.Plane().setFromNormalAndCoplanarPoint(this.camera.forward, point);
    const { perturb } = this;
    perturb.select = body;
    perturb.active = mujoco.mjtPertBit.mjPERT_TRANSLATE.value;
    perturb.scale = 1;
    perturb.localmass = this.massAt(body, point.toArray());
    perturb.localpos.set(this.toLocal(body, point.toArray()));
    perturb.refselpos.set(point.toArray());
    this.pointer = event.pointerId;
    this.physics.beforeStep.add(this.apply);
    return true;
  }

  move(event) {
    if (event.pointerId !== this.pointer) return;
    const { origin, direction } = this.camera.ray(event);
    const point = new THREE.Ray(origin, direction).intersectPlane(this.plane, new THREE.Vector3());
    if (point) this.perturb.refselpos.set(point.toArray());
  }

  end(event) {
    if (!this.active || event && event.pointerId !== this.pointer) return;
    this.pointer = undefined;
    const { select } = this.perturb;
    this.physics.field("xfrc_applied").fill(0, 6 * select, 6 * select + 6);
    this.physics.beforeStep.delete(this.apply);
  }

  applyForce() {
    const { mujoco, model, data } = this.physics;
    mujoco.mjv_applyPerturbForce(model, data, this.perturb);
  }

  /** The grabbed point and the pointer's, or null. */
  get ends() {
    if (!this.active) return null;
    const { select, localpos, refselpos } = this.perturb;
    return [this.toWorld(select, Array.from(localpos)), Array.from(refselpos)];
  }

  pose(body) {
    return [
      this.physics.field("xpos").slice(3 * body, 3 * body + 3),
      this.physics.field("xmat").slice(9 * body, 9 * body + 9),
    ];
  }

  toLocal(body, point) {
    const [position, m] = this.pose(body);
    const d = point.map((value, axis) => value - position[axis]);
    return [0, 1, 2].map(axis => m[axis] * d[0] + m[3 + axis] * d[1] + m[6 + axis] * d[2]);
  }

  toWorld(body, [x, y, z]) {
    const [position, m] = this.pose(body);
    return [0, 1, 2].map(
      axis => position[axis] + m[3 * axis] * x + m[3 * axis + 1] * y + m[3 * axis + 2] * z);
  }

  /**
   * Return the mass that a force at a point of a body feels where it feels the least [kg].
   *
   * Source: MuJoCo's mjv_initPerturb, which needs a drawn scene.
   */
  massAt(body, point) {
    const { mujoco, model, data } = this.physics;
    const { nv } = model;
    const jacobian = new mujoco.DoubleBuffer(3 * nv);
    const solved = new mujoco.DoubleBuffer(3 * nv);
    mujoco.mj_jac(model, data, jacobian, null, point, body);
    mujoco.mj_solveM(model, data, solved, Array.from(jacobian.GetView()));
    const [rows, columns] = [jacobian.GetView(), solved.GetView()];
    let inverse = 1e-15;
    for (let axis = 0; axis < 3; axis++) {
      let sum = 0;
      for (let i = axis * nv; i < (axis + 1) * nv; i++) sum += rows[i] * columns[i];
      inverse = Math.max(inverse, sum);
    }
    jacobian.delete();
    solved.delete();
    return 1 / inverse;
  }
}
