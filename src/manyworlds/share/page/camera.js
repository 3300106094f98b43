// A camera that turns around a point, in MuJoCo's angles, and follows a body.

import * as THREE from "../vendor/three.module.js";

const DEGREE = Math.PI / 180;
const FOLLOW_S = 0.15;  // time constant with which the camera follows

export class Camera {
  /** @param {HTMLElement} element where the camera is moved with the mouse or fingers */
  constructor(element) {
    this.element = element;
    this.camera = new THREE.PerspectiveCamera(42, 1, 0.01, 1000);
    this.camera.up.set(0, 0, 1);
    this.lookat = [0, 0, 0];
    /** Where the camera looks, relative to the body that it follows; null if it follows none. */
    this.offset = null;
    this.distance = 3;
    this.azimuth = 135;
    this.elevation = -20;
    /** Size of the world's moving things [m]. */
    this.extent = 1;
    /** Body that the camera follows, or -1. */
    this.body = -1;
    this.following = true;
    /** Parts of the picture that controls cover, at its right and bottom [px]. */
    this.covered = [0, 0];
    /** Positions of the pointers that move the camera, by id. */
    this.pointers = new Map();
    element.addEventListener("wheel", event => this.wheel(event), { passive: false });
    element.addEventListener("pointermove", event => this.move(event));
    for (const type of ["pointerup", "pointercancel", "lostpointercapture"]) {
      element.addEventListener(type, event => this.pointers.delete(event.pointerId));
    }
    element.addEventListener("contextmenu", event => event.preventDefault());
  }

  /** Take the camera of world.json for a world; `lookat` is relative to the body that it tracks. */
  place(physics, description) {
    this.physics = physics;
    const { stat } = physics.model;
    this.extent = Math.min(stat.extent, 5);
    const given = description ?? {};
    this.lookat = Array.from(given.lookat ?? stat.center);
    this.distance = given.distance ?? 1.5 * stat.extent;
    this.azimuth = given.azimuth ?? 135;
    this.elevation = given.elevation ?? -20;
    this.offset = null;
    this.body = -1;
    if (given.track_body) this.body = physics.id("body", given.track_body);
    if (window.innerWidth < window.innerHeight) this.distance *= 1.35;
    if (this.body >= 0) this.offset = Array.from(this.lookat);
    this.follow(Infinity);
  }

  /** Move toward the followed body; `passed` is the time since the last call [s]. */
  follow(passed) {
    if (this.body < 0 || !this.following) {
      this.offset = null;
      return;
    }
    const position = this.physics.field("xpos").slice(3 * this.body, 3 * this.body + 3);
    this.offset ??= [0, 0, 0];
    const share = 1 - Math.exp(-passed / FOLLOW_S);
    for (let axis = 0; axis < 3; axis++) {
      const wanted = position[axis] + this.offset[axis];
      this.lookat[axis] += share * (wanted - this.lookat[axis]);
    }
  }

  /** Direction in which the camera looks. */
  get forward() {
    const { azimuth, elevation } = this;
    const level = Math.cos(elevation * DEGREE);
    return new THREE.Vector3(
      level * Math.cos(azimuth * DEGREE),
      level * Math.sin(azimuth * DEGREE),
      Math.sin(elevation * DEGREE),
    );
  }

  /** Return the least height of a camera at a place, which is above the ground [m]. */
  lowest({ x, y }) {
    const { mujoco, model, data } = this.physics;
    const from = this.lookat[2] + this.distance + this.extent;
    const geom = new mujoco.IntBuffer(1);
    const depth = mujoco.mj_ray(model, data, [x, y, from], [0, 0, -1], null, true, -1, geom, null);
    const [hit] = geom.GetView();
    geom.delete();
    if (depth < 0 || model.body_weldid[model.geom_bodyid[hit]] !== 0) return -Infinity;
    return from - depth + 0.03 * this.extent;
  }

  /** Return the camera of three.js for a picture of some width and height [px]. */
  forThree(width, height) {
    const lookat = new THREE.Vector3(...this.lookat);
    this.camera.position.copy(lookat).addScaledVector(this.forward, -this.distance);
    this.camera.position.z = Math.max(this.camera.position.z, this.lowest(this.camera.position));
    this.camera.lookAt(lookat);
    this.camera.aspect = width / height;
    this.camera.near = 0.01 * this.distance;
    this.camera.far = 60 * this.distance + 60 * this.extent;
    const [right, bottom] = this.covered;
    this.camera.setViewOffset(width, height, right / 2, bottom / 2, width, height);
    this.camera.updateMatrixWorld();
    return this.camera;
  }

  /** Return origin and direction of the ray under a pointer. */
  ray(event) {
    const box = this.element.getBoundingClientRect();
    const x = 2 * (event.clientX - box.left) / box.width - 1;
    const y = 1 - 2 * (event.clientY - box.top) / box.height;
    const far = new THREE.Vector3(x, y, 0.5).unproject(this.camera);
    const origin = this.camera.position.clone();
    return { origin, direction: far.sub(origin).normalize() };
  }

  /** Return where a point of the world was in the last picture [px]. */
  screenOf(point) {
    const box = this.element.getBoundingClientRect();
    const { x, y } = new THREE.Vector3(...point).project(this.camera);
    return [box.left + (x + 1) / 2 * box.width, box.top + (1 - y) / 2 * box.height];
  }

  /** Begin to move the camera with a pointer. */
  grab(event) {
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
    this.element.setPointerCapture(event.pointerId);
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = [event.clientX, event.clientY];
    const dx = now[0] - before[0];
    const dy = now[1] - before[1];
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
    this.pointers.set(event.pointerId, now);
    if (others.length) {
      const [[, other]] = others;
      const gap = point => Math.max(Math.hypot(point[0] - other[0], point[1] - other[1]), 20);
      this.zoom(gap(before) / gap(now));
      this.pan(dx / 2, dy / 2);
    } else if (event.buttons & 2 || event.shiftKey) {
      this.pan(dx, dy);
    } else {
      this.azimuth -= 0.35 * dx;
      this.elevation = Math.min(Math.max(this.elevation - 0.35 * dy, -89), 60);
    }
  }

  pan(dx, dy) {
    const scale = 0.8 * this.distance / this.element.clientHeight;
    const right = new THREE.Vector3().setFromMatrixColumn(this.camera.matrixWorld, 0);
    const up = new THREE.Vector3().setFromMatrixColumn(this.camera.matrixWorld, 1);
    const shift = right.multiplyScalar(-dx * scale).addScaledVector(up, dy * scale).toArray();
    for (let axis = 0; axis < 3; axis++) {
      this.lookat[axis] += shift[axis];
      if (this.offset) this.offset[axis] += shift[axis];
    }
  }

  wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE;
    this.zoom(Math.exp(0.001 * event.deltaY * (lines ? 30 : 1)));
  }

  zoom(factor) {
    const { extent } = this;
    this.distance = Math.min(Math.max(this.distance * factor, 0.1 * extent), 40 * extent);
  }
}
