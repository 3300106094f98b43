// Materials of MuJoCo's geoms for three.js.

import * as THREE from "../vendor/three.module.js";

const RGB_ROLE = 1;  // mjTEXROLE_RGB
const ROLES = 10;  // mjNTEXROLE
const TWO_DIMENSIONAL = 0;  // mjTEXTURE_2D

/** Return the texture of a material as rows of RGBA, or null if it has none. */
function textureOf(model, material) {
  const id = model.mat_texid[ROLES * material + RGB_ROLE];
  if (id < 0 || model.tex_type[id] !== TWO_DIMENSIONAL) return null;
  const width = model.tex_width[id];
  const height = model.tex_height[id];
  const channels = model.tex_nchannel[id];
  const start = model.tex_adr[id];
  const source = model.tex_data;
  const pixels = new Uint8Array(4 * width * height);
  for (let i = 0; i < width * height; i++) {
    for (let channel = 0; channel < 3; channel++) {
      pixels[4 * i + channel] = source[start + channels * i + Math.min(channel, channels - 1)];
    }
    pixels[4 * i + 3] = channels === 4 ? source[start + 4 * i + 3] : 255;
  }
  const texture = new THREE.DataTexture(pixels, width, height);
  texture.colorSpace = THREE.SRGBColorSpace;
  texture.wrapS = THREE.RepeatWrapping;
  texture.wrapT = THREE.RepeatWrapping;
  texture.magFilter = THREE.LinearFilter;
  texture.minFilter = THREE.LinearMipmapLinearFilter;
  texture.generateMipmaps = true;
  texture.anisotropy = 8;
  texture.flipY = false;
  texture.needsUpdate = true;
  return texture;
}

/** Return color and opacity of a geom, which may be its material's, from 0 to 1. */
export function colorOf(model, geom) {
  const own = model.geom_rgba.slice(4 * geom, 4 * geom + 4);
  const material = model.geom_matid[geom];
  // As in MuJoCo, a geom's own color is used where it is not the default gray.
  const unset = own[0] === 0.5 && own[1] === 0.5 && own[2] === 0.5 && own[3] === 1;
  if (material < 0 || !unset) return own;
  return model.mat_rgba.slice(4 * material, 4 * material + 4);
}

/**
 * Return a material of three.js for geoms with a material of MuJoCo (-1 without one) and opacity.
 * Colors are those of instances. `repeat` is how often the texture of a plane repeats, or null.
 */
export function makeMaterial(model, material, opacity, repeat) {
  const made = new THREE.MeshStandardMaterial({ roughness: 0.65, metalness: 0.0 });
  if (material >= 0) {
    made.roughness = 1 - 0.7 * model.mat_shininess[material];
    made.map = textureOf(model, material);
    const emission = model.mat_emission[material];
    if (emission > 0) {
      const [r, g, b] = model.mat_rgba.slice(4 * material, 4 * material + 3);
      made.emissive.setRGB(r, g, b, THREE.SRGBColorSpace);
      made.emissiveIntensity = emission;
    }
    if (made.map && repeat) {
      // One picture of a plane's texture is two meters wide, if it repeats once a meter.
      const [s, t] = model.mat_texrepeat.slice(2 * material, 2 * material + 2);
      made.map.repeat.set(repeat[0] * s / 2, repeat[1] * t / 2);
    }
  }
  if (opacity < 1) {
    made.transparent = true;
    made.opacity = opacity;
    made.depthWrite = false;
  }
  return made;
}
