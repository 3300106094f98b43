// Geometries of MuJoCo's geoms for three.js. Sizes are in the geometry or in the scale, so that
// geoms of the same form share one geometry.

import * as THREE from "../vendor/three.module.js";

const ROUND = 40;  // segments around a full circle

const PLANE_EXTENT = 400;  // width of planes without an end [m]

/** Turn three's y axis, about which its round bodies are made, to MuJoCo's z axis. */
function upright(geometry) {
  return geometry.rotateX(Math.PI / 2);
}

/** Return the corners of a mesh's triangles with normals and texture coordinates. */
function meshGeometry(model, mesh) {
  const firstFace = model.mesh_faceadr[mesh];
  const faces = model.mesh_facenum[mesh];
  const firstVertex = model.mesh_vertadr[mesh];
  const firstNormal = model.mesh_normaladr[mesh];
  const firstCoordinate = model.mesh_texcoordadr[mesh];
  const { mesh_vert: vertices, mesh_face: corners, mesh_normal: normals } = model;
  const normalIds = model.mesh_facenormal;
  const coordinateIds = model.mesh_facetexcoord;
  const coordinates = model.mesh_texcoord;
  const position = new Float32Array(9 * faces);
  const normal = new Float32Array(9 * faces);
  const uv = firstCoordinate >= 0 ? new Float32Array(6 * faces) : null;
  for (let i = 0; i < 3 * faces; i++) {
    const corner = 3 * firstFace + i;
    const vertex = 3 * (firstVertex + corners[corner]);
    const direction = 3 * (firstNormal + normalIds[corner]);
    for (let axis = 0; axis < 3; axis++) {
      position[3 * i + axis] = vertices[vertex + axis];
      normal[3 * i + axis] = normals[direction + axis];
    }
    if (uv) {
      const coordinate = 2 * (firstCoordinate + coordinateIds[corner]);
      uv[2 * i] = coordinates[coordinate];
      uv[2 * i + 1] = 1 - coordinates[coordinate + 1];
    }
  }
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(position, 3));
  geometry.setAttribute("normal", new THREE.BufferAttribute(normal, 3));
  if (uv) geometry.setAttribute("uv", new THREE.BufferAttribute(uv, 2));
  return geometry;
}

/** Return the surface of a height field; rows are along y. */
function heightFieldGeometry(model, field) {
  const rows = model.hfield_nrow[field];
  const columns = model.hfield_ncol[field];
  const [halfX, halfY, top] = model.hfield_size.slice(4 * field, 4 * field + 4);
  const geometry = new THREE.PlaneGeometry(2 * halfX, 2 * halfY, columns - 1, rows - 1);
  const position = geometry.attributes.position;
  const start = model.hfield_adr[field];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      // three's rows run from +y to -y, those of MuJoCo from -y to +y.
      const vertex = (rows - 1 - row) * columns + column;
      position.setZ(vertex, top * model.hfield_data[start + row * columns + column]);
    }
  }
  geometry.computeVertexNormals();
  return geometry;
}

/**
 * Return the form of a geom: a key that equal forms share, a scale, and the geometry's maker;
 * null for what is not drawn.
 */
export function formOf(mujoco, model, geom) {
  const types = mujoco.mjtGeom;
  const size = Array.from(model.geom_size.slice(3 * geom, 3 * geom + 3));
  const [a, b, c] = size;
  switch (model.geom_type[geom]) {
    case types.mjGEOM_PLANE.value: {
      const width = a > 0 ? 2 * a : PLANE_EXTENT;
      const depth = b > 0 ? 2 * b : PLANE_EXTENT;
      return { key: `plane ${width} ${depth}`, scale: [1, 1, 1],
        make: () => new THREE.PlaneGeometry(width, depth) };
    }
    case types.mjGEOM_HFIELD.value: {
      const field = model.geom_dataid[geom];
      return { key: `height field ${field}`, scale: [1, 1, 1],
        make: () => heightFieldGeometry(model, field) };
    }
    case types.mjGEOM_SPHERE.value:
      return { key: "sphere", scale: [a, a, a],
        make: () => new THREE.SphereGeometry(1, ROUND, ROUND / 2) };
    case types.mjGEOM_ELLIPSOID.value:
      return { key: "sphere", scale: [a, b, c],
        make: () => new THREE.SphereGeometry(1, ROUND, ROUND / 2) };
    case types.mjGEOM_CAPSULE.value:
      return { key: `capsule ${a} ${b}`, scale: [1, 1, 1],
        make: () => upright(new THREE.CapsuleGeometry(a, 2 * b, ROUND / 4, ROUND)) };
    case types.mjGEOM_CYLINDER.value:
      return { key: "cylinder", scale: [a, a, b],
        make: () => upright(new THREE.CylinderGeometry(1, 1, 2, ROUND)) };
    case types.mjGEOM_BOX.value:
      return { key: "box", scale: [a, b, c], make: () => new THREE.BoxGeometry(2, 2, 2) };
    case types.mjGEOM_MESH.value: {
      const mesh = model.geom_dataid[geom];
      if (mesh < 0) return null;  // a slot that this variant leaves empty
      return { key: `mesh ${mesh}`, scale: [1, 1, 1], make: () => meshGeometry(model, mesh) };
    }
    default:
      return null;
  }
}
