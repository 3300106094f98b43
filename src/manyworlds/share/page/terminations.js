// Ends of episodes: conditions at which the task starts anew.

const CHECKS = {
  /** Angle between a body's z axis and the vertical. */
  tilt({ body, limit_rad: limit }, physics) {
    const index = physics.id("body", body);
    return () => Math.acos(Math.min(Math.max(physics.field("xmat")[9 * index + 8], -1), 1)) > limit;
  },
  /** Height of a body's frame above the world's origin. */
  height({ body, low = -Infinity, high = Infinity }, physics) {
    const index = physics.id("body", body);
    return () => {
      const z = physics.field("xpos")[3 * index + 2];
      return z < (low ?? -Infinity) || z > (high ?? Infinity);
    };
  },
  time({ limit_s: limit }, physics) {
    return () => physics.time >= limit;
  },
};

/**
 * Return a function that says why the episode ends now, or null.
 * @param {object[]} descriptions `terminations` of world.json
 */
export function makeTerminations(descriptions, physics) {
  const checks = descriptions.map(each => {
    if (!(each.kind in CHECKS)) throw new Error(`There is no termination '${each.kind}'.`);
    return { label: each.label ?? each.kind, ended: CHECKS[each.kind](each, physics) };
  });
  return () => checks.find(check => check.ended())?.label ?? null;
}
