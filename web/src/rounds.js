// A run's rounds: what they are called, and by what they keep candidates.

import { rowsOf } from "./data.js";
import { number, probability, shown } from "./text.js";

/** @typedef {import("./types.js").Run} Run */

/**
 * @typedef {object} Layer A round's row of the layers' table, as far as the page reads it.
 * @property {number} pass
 * @property {number} layer
 * @property {number} threshold
 * @property {number | null} threshold_z Null where votes do not decide.
 * @property {number} noise_std
 * @property {number} num_clients
 * @property {number} num_reports
 * @property {number} num_candidates
 * @property {number} num_kept
 * @property {number} num_finished
 * @property {string} kept_by
 * @property {number | null} coverage
 * @property {number | null} missed_mass
 * @property {boolean | number} decides
 */

/**
 * Return a run's rounds, in order.
 * @param {Run} run
 * @returns {Layer[]}
 */
export function layersOf(run) {
  return rowsOf(run.layers);
}

/** @param {Layer} layer */
export function isValidation(layer) {
  return layer.kept_by === "validation" || layer.kept_by === "evidence";
}

/** @param {Layer} layer */
export function byPosterior(layer) {
  return layer.kept_by === "posterior";
}

/** Whether the votes of a round alone say what it kept. @param {Layer} layer */
export function byVotes(layer) {
  return ["votes", "threshold", "validation"].includes(layer.kept_by);
}

/** @param {Layer} layer */
export function roundName(layer) {
  return isValidation(layer) ? "validation round" : `layer ${layer.layer}`;
}

/**
 * Return names of all rounds, with the pass where there are several.
 * @param {Layer[]} layers
 */
export function roundNames(layers) {
  const several = new Set(layers.map((layer) => layer.pass)).size > 1;
  return layers.map((layer) => `${several && !isValidation(layer) ? `pass ${layer.pass}, ` : ""}${roundName(layer)}`);
}

/**
 * Return in which round a missed word was lost, and why.
 * @param {Run} run
 * @param {any} row The word's row among the missed ones.
 */
export function lossOf(run, row) {
  if (!row.layer) return shown(row.why);
  const layers = layersOf(run);
  const place = layers.findIndex((each) => each.pass === row.pass && each.layer === row.layer);
  if (place < 0) return `layer ${row.layer}`;
  const layer = layers[place], name = roundNames(layers)[place];
  if (byPosterior(layer)) return `${name}: ${posteriorText(row.posterior)}`;
  const votes = `${name}: ${number(row.votes)} votes`;
  if (!byVotes(layer)) return `${votes}, not returned`;
  if (row.votes >= row.threshold) return `${votes}, a tie with the last one kept`;
  return `${votes}, ${isValidation(layer) ? "returned" : "kept"} from ${number(row.threshold)}`;
}

/** @param {number | null | undefined} value Undefined where it is not recorded; null for one that was not computed. */
function posteriorText(value) {
  if (value === undefined) return "posterior probability not recorded";
  return value === null ? "posterior probability not computed, as too unlikely" : `posterior probability ${probability(value)}`;
}
