// The picture of a world: its geoms in three.js, light, shadow, sky.

import * as THREE from "../vendor/three.module.js";
import { makeDeformables } from "./deformables.js";
import { colorOf, makeMaterial } from "./materials.js";
import { formOf } from "./shapes.js";

const SHOWN_GROUPS = 3;  // groups 0, 1 and 2, as MuJoCo's viewer shows
const LARGE = 2;  // radius of geoms that are ground [m]
const TONES = {
  light: { sky: 0xe9eef3, above: 0xffffff, below: 0xbac2cc, ambient: 1.9, sun: 1.7, ground: 0.95 },
  dark: { sky: 0x14181e, above: 0xdfe8f5, below: 0x4a525e, ambient: 2.1, sun: 2.1, ground: 0.13 },
};

export class Scene {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: true });
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    this.scene = new THREE.Scene();
    this.scene.fog = new THREE.Fog(0, 1, 2);
    this.hemisphere = new THREE.HemisphereLight();
    this.sun = new THREE.DirectionalLight(0xffffff);
    this.sun.castShadow = true;
    const resolution = Math.min(window.innerWidth, window.innerHeight) < 600 ? 1024 : 2048;
    this.sun.shadow.mapSize.set(resolution, resolution);
    this.sun.shadow.radius = 3;
    this.scene.add(this.hemisphere, this.sun, this.sun.target);
    this.root = new THREE.Group();
    this.root.matrixAutoUpdate = false;
    this.scene.add(this.root);
    this.spring = makeSpring();
    this.scene.add(this.spring);
    /** Groups of geoms that share form and material. */
    this.batches = [];
    this.deformables = [];
    this.physics = null;
    /** What the last picture showed; null to draw again. */
    this.drawn = null;
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", () => this.setTone(dark.matches));
    this.setTone(dark.matches);
  }

  setTone(dark) {
    const tone = dark ? TONES.dark : TONES.light;
    this.tone = tone;
    this.drawn = null;
    this.scene.background = new THREE.Color(tone.sky);
    this.scene.fog.color.set(tone.sky);
    this.hemisphere.color.set(tone.above);
    this.hemisphere.groundColor.set(tone.below);
    this.hemisphere.intensity = tone.ambient;
    this.sun.intensity = tone.sun;
    for (const batch of this.batches) this.shadeGround(batch);
  }

  /** Darken the ground on a dark page: it fills most of the picture. */
  shadeGround(batch) {
    if (batch.ground) batch.mesh.material.color.setScalar(this.tone.ground);
  }

  /** Show another world. */
  show(physics) {
    this.clear();
    this.physics = physics;
    const { mujoco, model } = physics;
    const grounds = groundBodies(mujoco, model);
    const parts = new Map();
    for (let geom = 0; geom < model.ngeom; geom++) {
      if (model.geom_group[geom] >= SHOWN_GROUPS) continue;
      const color = colorOf(model, geom);
      const form = formOf(mujoco, model, geom);
      if (form === null || color[3] === 0) continue;
      const body = model.geom_bodyid[geom];
      const fixed = model.body_weldid[body] === 0 && model.body_mocapid[body] < 0;
      const ground = grounds.has(body);
      const key = `${form.key}|${model.geom_matid[geom]}|${color[3]}|${fixed}|${ground}`;
      if (!parts.has(key)) parts.set(key, { form, fixed, ground, opacity: color[3], geoms: [] });
      parts.get(key).geoms.push({ geom, color, scale: form.scale });
    }
    const geometries = new Map();
    for (const part of parts.values()) {
      const { key, make } = part.form;
      if (!geometries.has(key)) geometries.set(key, make());
      this.addBatch(part, geometries.get(key));
    }
    this.deformables = makeDeformables(physics, SHOWN_GROUPS);
    for (const { object } of this.deformables) this.root.add(object);
    this.update(true);
    this.drawn = null;
  }

  addBatch({ form, fixed, ground, opacity, geoms }, geometry) {
    const { model } = this.physics;
    const plane = form.key.startsWith("plane");
    const field = form.key.startsWith("height field");
    const extent = plane ? geometry.parameters : null;
    const repeat = plane ? [extent.width, extent.height] : null;
    const material = makeMaterial(model, model.geom_matid[geoms[0].geom], opacity, repeat);
    const mesh = new THREE.InstancedMesh(geometry, material, geoms.length);
    mesh.frustumCulled = false;  // three's bounds are those of the first picture
    mesh.castShadow = !plane && !field && opacity === 1;
    mesh.receiveShadow = true;
    const color = new THREE.Color();
    geoms.forEach(({ color: [r, g, b] }, i) => {
      mesh.setColorAt(i, color.setRGB(r, g, b, THREE.SRGBColorSpace));
    });
    const batch = { mesh, geoms, fixed, ground };
    this.batches.push(batch);
    this.shadeGround(batch);
    this.root.add(mesh);
  }

  /** Move all geoms to the present state; those that never move only if `all`. */
  update(all = false) {
    const positions = this.physics.field("geom_xpos");
    const rotations = this.physics.field("geom_xmat");
    for (const { mesh, geoms, fixed } of this.batches) {
      if (fixed && !all) continue;
      const out = mesh.instanceMatrix.array;
      geoms.forEach(({ geom, scale }, i) => {
        const at = 16 * i;
        for (let column = 0; column < 3; column++) {
          for (let row = 0; row < 3; row++) {
            out[at + 4 * column + row] = rotations[9 * geom + 3 * row + column] * scale[column];
          }
          out[at + 12 + column] = positions[3 * geom + column];
        }
        out[at + 15] = 1;
      });
      mesh.instanceMatrix.needsUpdate = true;
    }
    for (const deformable of this.deformables) deformable.update(this.physics);
  }

  /** Show the spring that pushes a body, from a point to another; null hides it. */
  showSpring(ends) {
    this.spring.visible = ends !== null;
    if (ends === null) return;
    const [from, to] = ends.map(point => new THREE.Vector3(...point));
    const [line, ball] = this.spring.children;
    const along = to.clone().sub(from);
    line.position.copy(from).addScaledVector(along, 0.5);
    line.scale.set(1, Math.max(along.length(), 1e-6), 1);
    line.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), along.normalize());
    ball.position.copy(to);
    this.spring.userData.resize(this.extent);
  }

  /** Draw what a camera sees, unless it was drawn last; `marks` tells of other changes. */
  draw(camera, marks) {
    const { width, height } = this.canvas.getBoundingClientRect();
    const { covered, distance, azimuth, elevation, lookat } = camera;
    const seen = [this.physics.time, this.spring.visible, marks, width, height,
      window.devicePixelRatio, ...covered, distance, azimuth, elevation, ...lookat].join();
    if (seen === this.drawn && !this.spring.visible) return;
    this.drawn = seen;
    this.update();
    this.fit(width, height);
    this.lightAround(camera);
    this.renderer.render(this.scene, camera.forThree(width, height));
  }

  /** Put light, shadow and haze around the point that a camera looks at. */
  lightAround(camera) {
    const { extent } = camera;
    this.extent = extent;
    const target = new THREE.Vector3(...camera.lookat);
    const reach = 1.6 * camera.distance;  // of shadows
    this.sun.target.position.copy(target);
    this.sun.position.copy(target).add(new THREE.Vector3(-1.2, -1.6, 3.2).setLength(4 * reach));
    const { shadow } = this.sun;
    if (shadow.camera.right !== reach) {
      Object.assign(shadow.camera,
        { left: -reach, right: reach, bottom: -reach, top: reach, near: reach, far: 8 * reach });
      shadow.camera.updateProjectionMatrix();
      shadow.normalBias = 0.004 * reach;
    }
    this.scene.fog.near = 3 * camera.distance + 6 * extent;
    this.scene.fog.far = 8 * camera.distance + 24 * extent;
  }

  /** Draw in the resolution of the screen. */
  fit(width, height) {
    const ratio = Math.min(window.devicePixelRatio, 2);
    const size = this.renderer.getSize(new THREE.Vector2());
    if (size.x === width && size.y === height && this.renderer.getPixelRatio() === ratio) return;
    this.renderer.setPixelRatio(ratio);
    this.renderer.setSize(width, height, false);
  }

  clear() {
    for (const { mesh } of this.batches) {
      this.root.remove(mesh);
      mesh.geometry.dispose();
      mesh.material.map?.dispose();
      mesh.material.dispose();
      mesh.dispose();
    }
    this.batches = [];
    for (const deformable of this.deformables) {
      this.root.remove(deformable.object);
      deformable.dispose();
    }
    this.deformables = [];
  }
}

/** Return the fixed bodies that make up the ground: those with a plane or other large geoms. */
function groundBodies(mujoco, model) {
  const planes = [mujoco.mjtGeom.mjGEOM_PLANE.value, mujoco.mjtGeom.mjGEOM_HFIELD.value];
  const bodies = new Set();
  for (let geom = 0; geom < model.ngeom; geom++) {
    const body = model.geom_bodyid[geom];
    if (model.body_weldid[body] !== 0) continue;
    const large = model.geom_rbound[geom] > LARGE;
    if (large || planes.includes(model.geom_type[geom])) bodies.add(body);
  }
  return bodies;
}

function makeSpring() {
  const material = new THREE.MeshBasicMaterial({ color: 0xf08c00 });
  const line = new THREE.Mesh(new THREE.CylinderGeometry(1, 1, 1, 12), material);
  const ball = new THREE.Mesh(new THREE.SphereGeometry(1, 20, 14), material);
  const spring = new THREE.Group();
  spring.add(line, ball);
  spring.visible = false;
  spring.userData.resize = extent => {
    const radius = 0.006 * extent;
    line.scale.x = radius;
    line.scale.z = radius;
    ball.scale.setScalar(3 * radius);
  };
  return spring;
}
