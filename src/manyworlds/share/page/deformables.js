// Flexes of a world, such as ropes, cloth and soft bodies, in three.js.

import * as THREE from "../vendor/three.module.js";

/** Return the vertices of a flex's lines or triangles, as indices within the flex. */
function elementsOf(model, flex) {
  const dimension = model.flex_dim[flex];
  if (dimension < 3) {
    const start = model.flex_elemdataadr[flex];
    return model.flex_elem.slice(start, start + (dimension + 1) * model.flex_elemnum[flex]);
  }
  const start = model.flex_shelldataadr[flex];  // the surface of a body of tetrahedra
  return model.flex_shell.slice(start, start + 3 * model.flex_shellnum[flex]);
}

function colorOf(model, flex) {
  const material = model.flex_matid[flex];
  if (material < 0) return model.flex_rgba.slice(4 * flex, 4 * flex + 4);
  return model.mat_rgba.slice(4 * material, 4 * material + 4);
}

/** A flex as an object of three.js; `update` moves its vertices. */
class Deformable {
  constructor(physics, flex) {
    const { model } = physics;
    this.start = 3 * model.flex_vertadr[flex];
    this.end = this.start + 3 * model.flex_vertnum[flex];
    this.isLine = model.flex_dim[flex] === 1;
    const geometry = new THREE.BufferGeometry();
    const positions = new Float32Array(this.end - this.start);
    geometry.setAttribute("position", new THREE.BufferAttribute(positions, 3));
    geometry.setIndex(Array.from(elementsOf(model, flex)));
    const [r, g, b, opacity] = colorOf(model, flex);
    const color = new THREE.Color().setRGB(r, g, b, THREE.SRGBColorSpace);
    const look = { color, transparent: opacity < 1, opacity };
    if (this.isLine) {
      this.object = new THREE.LineSegments(geometry, new THREE.LineBasicMaterial(look));
    } else {
      const material = new THREE.MeshStandardMaterial(
        { ...look, roughness: 0.8, side: THREE.DoubleSide });
      this.object = new THREE.Mesh(geometry, material);
      this.object.castShadow = true;
      this.object.receiveShadow = true;
    }
    this.object.frustumCulled = false;
  }

  update(physics) {
    const { geometry } = this.object;
    geometry.attributes.position.array.set(
      physics.field("flexvert_xpos").subarray(this.start, this.end));
    geometry.attributes.position.needsUpdate = true;
    if (!this.isLine) geometry.computeVertexNormals();
  }

  dispose() {
    this.object.geometry.dispose();
    this.object.material.dispose();
  }
}

/** Return the flexes of a world in groups that MuJoCo's viewer shows. */
export function makeDeformables(physics, shownGroups) {
  const { model } = physics;
  const found = [];
  for (let flex = 0; flex < model.nflex; flex++) {
    if (model.flex_group[flex] < shownGroups) found.push(new Deformable(physics, flex));
  }
  return found;
}
