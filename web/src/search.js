// The search for a word: its verdict, and its path through the rounds.

import { bdi, el, fill } from "./dom.js";
import { fateOf } from "./fate.js";
import { isKnown } from "./known.js";
import { byPosterior, isValidation, layersOf, roundName } from "./rounds.js";
import { fakeShare, number, perClient, probability, shown } from "./text.js";
import { DROPPED } from "./trie.js";

/** @typedef {import("./types.js").Run} Run */
/** @typedef {import("./trie.js").Trie} Trie */
/** @typedef {import("./trie.js").TrieNode} TrieNode */
/** @typedef {import("./fate.js").Fate} Fate */

/**
 * @typedef {object} Said What a round says of a candidate.
 * @property {number} votes
 * @property {number} z
 * @property {number} estimate
 * @property {number} stdError
 * @property {number} share
 * @property {number} fakeVotes NaN without fake clients.
 */

/**
 * Return the search of a run.
 * @param {object} options
 * @param {Run} options.run
 * @param {(pass: number) => Promise<Trie>} options.trieOf
 * @param {() => Promise<any[]>} options.missed
 * @param {(fate: Fate, pass: number) => void} options.found Called with what is shown.
 */
export function searchBox({ run, trieOf, missed, found }) {
  const input = el("input", { type: "search", size: "24", maxlength: "20000", autocomplete: "off", spellcheck: "false" });
  const answer = el("div", { class: "answer", role: "status", "aria-live": "polite" });
  const form = el(
    "form",
    { class: "controls" },
    el("label", { class: "choice" }, "Word ", input),
    el("button", { type: "submit" }, "Find it"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void look(input.value);
  });

  /** @param {string} word */
  async function look(word) {
    input.value = word;
    if (!word) return;
    const passes = [...new Set(run.rounds.map(([pass]) => pass))];
    const row = (await missed()).find((each) => each.word === word) ?? null;
    const known = await isKnown(run, word);
    const parts = [];
    for (const pass of passes) {
      const fate = fateOf(run, pass, await trieOf(pass), word, row);
      parts.push(part(fate, passes.length > 1 ? pass : 0));
      found(fate, pass);
      // Later passes leave out what an earlier one found.
      if (fate.found || fate.isCandidate) break;
    }
    const said = row ? ` is held by ${number(row.true_clients)} clients, and was missed.` : known ? ` is a known word: no device reports it, since it is in the list ${shown(run.known?.name ?? "")}. Votes for the whole word are noise.` : "";
    fill(answer, el("p", {}, el("strong", {}, bdi(shown(word))), said), ...parts);
  }

  /** @param {Fate} fate @param {number} pass */
  function part(fate, pass) {
    const rows = fate.path.map(step);
    const last = fate.path.at(-1);
    if (fate.isCandidate && last) rows.push(...validation(last));
    const heads = [
      "prefix", "round", "votes", ...(run.fakes ? ["of these by fake clients"] : []), "z", ...(hasPosterior() ? ["posterior probability"] : []),
      "contributions in the cohort, estimated \u00b1 2 std. errors", "contributions per client asked", "clients of the population, true (of a prefix: once for each word)", "",
    ];
    return el(
      "div",
      { class: fate.found ? "fate found" : "fate lost" },
      el("p", {}, pass ? `Pass ${pass}: ` : "", fate.verdict),
      rows.length
        ? el(
            "div",
            { class: "scroll path" },
            el(
              "table",
              {},
              el("thead", {}, el("tr", {}, heads.map((text, i) => el("th", { scope: "col", class: i === 0 ? "label" : null }, text)))),
              el("tbody", {}, rows),
            ),
          )
        : null,
    );
  }

  function hasPosterior() {
    return layersOf(run).some(byPosterior);
  }

  /** @param {TrieNode} node */
  function step(node) {
    const layer = layersOf(run).find((each) => each.layer === node.layer);
    const said = node.layer ? node : null;
    const kept = !node.isWord ? "kept" : run.validates ? "candidate" : "discovered";
    const fate = !said ? "not asked" : node.fate === DROPPED ? "dropped" : kept;
    return cells(node, said && layer ? roundName(layer) : "\u2013", said, fate);
  }

  /**
   * Return the row of the validation round of a word that became a candidate before it.
   * @param {TrieNode} node
   */
  function validation(node) {
    const round = layersOf(run).find(isValidation);
    if (!round) return [];
    const returned = node.validation?.returned;
    const fate = returned ? "returned" : run.words ? "not returned" : "";
    // Only asked about there: the candidate's own row says the same.
    if (node.layer === round.layer) return [];
    return [cells(node, roundName(round), node.validation, fate, node.validation ? "" : "not recorded")];
  }

  /** @param {TrieNode} node @param {string} round @param {Said | null} said @param {string} fate @param {string} [missing] */
  function cells(node, round, said, fate, missing = "\u2013") {
    const posterior = said === node && Number.isFinite(node.posterior) ? probability(node.posterior) : "\u2013";
    return el(
      "tr",
      {},
      el("td", { class: "label" }, bdi(shown(node.prefix)), node.isWord ? " \u25a0" : ""),
      el("td", {}, round),
      el("td", {}, said ? number(said.votes) : missing),
      run.fakes ? el("td", {}, said && Number.isFinite(said.fakeVotes) ? fakeShare(said) : "\u2013") : null,
      el("td", {}, said ? number(Number.isFinite(said.z) ? said.z : said.z > 0 ? "inf" : "-inf") : "\u2013"),
      hasPosterior() ? el("td", {}, posterior) : null,
      el("td", {}, said ? `${number(Math.round(said.estimate))} \u00b1 ${number(Math.round(2 * said.stdError))}` : "\u2013"),
      el("td", {}, said ? perClient(said.share) : "\u2013"),
      el("td", {}, node.layer && node.trueClients >= 0 ? number(node.trueClients) : "\u2013"),
      el("td", {}, fate),
    );
  }

  return { element: el("div", { class: "search" }, form, answer), look };
}
