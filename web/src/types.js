/**
 * The shapes of a page's data, as `fedhh/experiments/report/explorer` writes it.
 *
 * @typedef {Record<string, any[]>} Columns A table: for each column its values.
 *
 * @typedef {object} Said What numbers of votes say in a round.
 * @property {number[]} votes Ascending.
 * @property {(number | "inf" | "-inf" | null)[]} z
 * @property {(number | null)[]} estimate
 * @property {(number | null)[]} std_error
 *
 * @typedef {object} RoundChunk A round's recorded candidates.
 * @property {string[]} prefix
 * @property {number[]} is_word
 * @property {number[]} votes
 * @property {number[]} true_clients -1 where nobody has counted them yet.
 * @property {number[]} fate 0 dropped, 1 kept, 2 found as a word.
 * @property {number[]} stands_for
 * @property {(number | null)[]} [posterior] Where one decides; null where none was computed.
 * @property {number[]} [fake_votes] Of runs with fake clients: how many of the votes are theirs.
 * @property {number[]} [by_fakes] Likewise whether nobody holds it and fake clients pushed it.
 * @property {Said} said
 *
 * @typedef {object} Claim A guarantee.
 * @property {string} unit
 * @property {string} against
 * @property {string} bound
 * @property {string} value
 * @property {string} delta
 * @property {string} theorem
 * @property {string} assumptions
 * @property {boolean} best
 * @property {boolean} realised
 *
 * @typedef {object} TextTable
 * @property {string} title
 * @property {string[]} columns
 * @property {string[][]} rows
 * @property {string} note
 * @property {number} labels How many of the first columns are text.
 *
 * @typedef {object} Run
 * @property {string} name Tells it from the other run of the page.
 * @property {string} title The protocol's.
 * @property {string} population
 * @property {number} clients
 * @property {string} alphabet
 * @property {number} depth Symbols of the longest word.
 * @property {number} max_items
 * @property {string} estimated Whom estimates of words count: "contributors" or "holders".
 * @property {number | null} coverage
 * @property {number} [discovered]
 * @property {number} [discovered_false]
 * @property {number | null} seed
 * @property {boolean} beside_lexicon
 * @property {boolean} validates Whether a validation round decides which candidates are discovered.
 * @property {{name: string, chunk: string | null} | null} known The list of words that devices do
 *   not report, and the piece that holds it, where the page has one.
 * @property {string | null} fakes What fake clients did, in a sentence; null without any.
 * @property {string | null} below_zero Why estimates are below 0, where some are.
 * @property {string | null} words Name of the piece with the discovered words.
 * @property {string | null} missed Name of the piece with the words that were missed.
 * @property {[number, number, string][]} rounds Pass, layer and piece of each recorded round.
 * @property {Columns} votes Candidates by ranges of votes.
 * @property {Columns} layers
 * @property {string | null} note What is missing, and why.
 * @property {{claims: Claim[], notes: string[]}} privacy
 * @property {{days: number, share_served: number, missed: string | null, rounds: TextTable} | null} calendar
 *   Of a run whose devices are not always there: its totals, the round that had too few answers,
 *   and when each round took place.
 * @property {string} config
 *
 * @typedef {object} RunManifest
 * @property {"run"} kind
 * @property {string} title
 * @property {Run[]} runs
 * @property {boolean} overlays Whether the reader asked for two runs, and sees both first.
 * @property {TextTable | null} comparison Of several runs, the numbers that a reader wants first.
 * @property {TextTable | null} measures
 * @property {{nearest: number, sampled: number, missed: number}} sample
 * @property {number} [most] Candidates of a round on a live page.
 * @property {boolean} live
 *
 * @typedef {object} Axis
 * @property {string} path
 * @property {string} label
 *
 * @typedef {object} SweepManifest
 * @property {"sweep"} kind
 * @property {string} title
 * @property {string} [lead] What a chart shows whose rows are no runs.
 * @property {string} clients
 * @property {number} failed
 * @property {Axis[]} axes
 * @property {(Axis & {share: boolean})[]} metrics
 * @property {string} best
 * @property {{x?: string, color?: string, facet?: string}} layout What is shown first.
 * @property {Record<string, string>} colors Of protocols, by a value that names one.
 * @property {Columns} rows
 * @property {TextTable[]} tables
 * @property {string} config
 * @property {Record<string, string>} opens Pages of cells whose run is there.
 * @property {boolean} live
 *
 * @typedef {object} Card A number that stands on top.
 * @property {string} label
 * @property {string} value
 * @property {string} note
 *
 * @typedef {object} StudyManifest A pipeline or a repeated collection.
 * @property {"study"} kind
 * @property {string} title
 * @property {Card[]} cards
 * @property {string[]} notes
 * @property {TextTable[]} tables
 * @property {SweepManifest[]} charts
 * @property {string} config
 * @property {boolean} live
 *
 * @typedef {RunManifest | SweepManifest | StudyManifest} Manifest
 */

export {};
