// Points that commands name, which are shown as balls and dragged by the mouse or a finger.

import * as THREE from "../vendor/three.module.js";

const AXES = ["x", "y", "z"];

/** Whether the components of a command are a point in the world: x and y, or x, y and z. */
function isPoint({ labels }) {
  const size = labels.length;
  return size >= 2 && size <= 3 && labels.every((label, i) => label.split(" ")[0] === AXES[i]);
}

export class Goals {
  /**
   * @param {Commands} commands
   * @param {Camera} camera
   * @param {THREE.Scene} scene
   */
  constructor(commands, camera, scene) {
    this.commands = commands;
    this.camera = camera;
    this.group = new THREE.Group();
    scene.add(this.group);
    this.dragged = null;
  }

  /** Show the points of the commands that are in use. */
  build() {
    this.end();
    this.group.clear();
    for (const command of this.commands.active.filter(isPoint)) {
      const material = new THREE.MeshStandardMaterial(
        { color: 0x2f9e44, transparent: true, opacity: 0.65, depthWrite: false });
      const ball = new THREE.Mesh(new THREE.SphereGeometry(1, 28, 18), material);
      ball.scale.setScalar(0.035 * Math.min(this.camera.extent, 1));
      ball.userData.command = command;
      this.group.add(ball);
    }
  }

  /** Put the balls where the commands are; return a text that changes when one moves. */
  update() {
    const places = [];
    for (const ball of this.group.children) {
      const [x, y, z = ball.scale.x] = this.commands.values.get(ball.userData.command.name);
      ball.position.set(x, y, z);
      places.push(x, y, z);
    }
    return places.join();
  }

  /** Grab the ball under a pointer; return whether there is one. */
  begin(event) {
    const { origin, direction } = this.camera.ray(event);
    const ray = new THREE.Ray(origin, direction);
    for (const ball of this.group.children) {
      // Fingers are wide.
      if (ray.distanceToPoint(ball.position) > 1.6 * ball.scale.x) continue;
      const flat = ball.userData.command.labels.length === 2;
      const normal = flat ? new THREE.Vector3(0, 0, 1) : this.camera.forward;
      this.plane = new THREE.Plane().setFromNormalAndCoplanarPoint(normal, ball.position);
      this.dragged = { command: ball.userData.command, pointer: event.pointerId };
      return true;
    }
    return false;
  }

  move(event) {
    if (this.dragged?.pointer !== event.pointerId) return;
    const { origin, direction } = this.camera.ray(event);
    const point = new THREE.Ray(origin, direction).intersectPlane(this.plane, new THREE.Vector3());
    if (!point) return;
    const { name, labels, low, high } = this.dragged.command;
    const values = point.toArray().slice(0, labels.length);
    this.commands.set(name, values.map((value, i) => Math.min(Math.max(value, low[i]), high[i])));
  }

  end(event) {
    if (!event || this.dragged?.pointer === event.pointerId) this.dragged = null;
  }
}
