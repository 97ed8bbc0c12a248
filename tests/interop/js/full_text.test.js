"use strict";
// Full-text and hybrid search over several partitions. This SDK collects the statistics, runs the components and fuses
// them; the tests compute the expected results from the published formulas: BM25 (k1 1.2, b 0.75) and RRF (60).

const assert = require("node:assert/strict");
const { before, test } = require("node:test");
const { split } = require("./management");
const { overBoth, refused } = require("./support");

// No stop words and no two forms of one word: stemming changes nothing.
const WORDS = ["apple", "brick", "cloud", "drum", "elbow", "flint", "grape", "hammock"];

function document(n) {
  const words = WORDS.flatMap((word, at) => (n % (at + 2) ? [] : Array(Math.floor(n / (at + 1)) % 3).fill(word)));
  const text = [...words, ...Array((n * 7) % 11).fill("filler")].join(" ");
  const id = String(n).padStart(3, "0");
  return { id, pk: `key ${n % 17}`, n, text, title: words.slice(0, 3).join(" "), v: [n, (n * n) % 31] };
}

const DOCUMENTS = Array.from({ length: 120 }, (_, at) => document(at + 1));
const DEFINITION = {
  throughput: 30000,
  fullTextPolicy: {
    defaultLanguage: "en-US",
    fullTextPaths: [
      { path: "/text", language: "en-US" },
      { path: "/title", language: "en-US" },
    ],
  },
  vectorEmbeddingPolicy: {
    vectorEmbeddings: [{ path: "/v", dataType: "float32", dimensions: 2, distanceFunction: "euclidean" }],
  },
  indexingPolicy: {
    includedPaths: [{ path: "/*" }],
    excludedPaths: [{ path: "/v/*" }],
    fullTextIndexes: [{ path: "/text" }, { path: "/title" }],
    vectorIndexes: [{ path: "/v", type: "flat" }],
  },
};

/** The score of each document, by id. */
function bm25(path, terms) {
  const texts = new Map(DOCUMENTS.map((item) => [item.id, item[path].split(" ").filter(Boolean)]));
  const all = [...texts.values()];
  const average = all.reduce((sum, words) => sum + words.length, 0) / all.length;
  const scores = new Map([...texts.keys()].map((id) => [id, 0]));
  for (const term of terms) {
    const hits = all.filter((words) => words.includes(term)).length;
    const rarity = Math.log(1 + (all.length - hits + 0.5) / (hits + 0.5));
    for (const [id, words] of texts) {
      const count = words.filter((word) => word === term).length;
      const norm = 1.2 * (0.25 + (0.75 * words.length) / average);
      scores.set(id, scores.get(id) + (rarity * count * 2.2) / (count + norm));
    }
  }
  return scores;
}

const distances = ([x, y]) => new Map(DOCUMENTS.map((item) => [item.id, -Math.hypot(item.v[0] - x, item.v[1] - y)]));

/** Fused scores, by id: equal scores share a rank. */
function rrf(components, weights) {
  const fused = new Map(DOCUMENTS.map((item) => [item.id, 0]));
  components.forEach((scores, at) => {
    const ranked = [...new Set(scores.values())].sort((a, b) => b - a);
    const ranks = new Map(ranked.map((score, rank) => [score, rank + 1]));
    for (const [id, score] of scores) fused.set(id, fused.get(id) + (weights?.[at] ?? 1) / (60 + ranks.get(score)));
  });
  return fused;
}

/** The rows are the best ones in descending order of score; items with equal scores are interchangeable. */
function checkOrder(rows, scores, many) {
  const rounded = (score) => Math.round(score * 1e9);
  const best = [...scores.values()].sort((a, b) => b - a).slice(0, many);
  assert.deepEqual(rows.map((row) => rounded(scores.get(row.id))), best.map(rounded));
}

overBoth("full text", (world) => {
  let container;
  const all = async (query, options) => (await container.items.query(query, options).fetchAll()).resources;

  before(async () => {
    container = await world.make("/pk", DEFINITION);
    await Promise.all(DOCUMENTS.map((item) => container.items.create(item)));
  });

  test("words and phrases", async () => {
    const ids = await all("SELECT c.id FROM c WHERE FullTextContainsAll(c.text, 'cloud', 'flint')");
    const want = DOCUMENTS.filter((item) => item.text.includes("cloud") && item.text.includes("flint"));
    assert.deepEqual(ids.map((row) => row.id).sort(), want.map((item) => item.id));
    const phrase = await all("SELECT c.id FROM c WHERE FullTextContains(c.text, 'apple apple')");
    const twice = DOCUMENTS.filter((item) => item.text.includes("apple apple"));
    assert.deepEqual(phrase.map((row) => row.id).sort(), twice.map((item) => item.id));
  });

  for (const terms of [["hammock"], ["apple"], ["drum", "elbow", "flint"]]) {
    test(`ranked by BM25 of the whole container: ${terms}`, async () => {
      const quoted = terms.map((term) => `'${term}'`).join(", ");
      const rows = await all(`SELECT TOP 30 c.id FROM c ORDER BY RANK FullTextScore(c.text, ${quoted})`);
      checkOrder(rows, bm25("text", terms), 30);
    });
  }

  test("with parameters, an offset and a limit", async () => {
    const query = "SELECT c.id FROM c WHERE c.n < @n ORDER BY RANK FullTextScore(c.text, @term) OFFSET 5 LIMIT 10";
    const parameters = [
      { name: "@n", value: 100 },
      { name: "@term", value: "brick" },
    ];
    const rows = await all({ query, parameters });
    const scores = [...bm25("text", ["brick"])].filter(([id]) => Number(id) < 100);
    const best = scores.map(([, score]) => score).sort((a, b) => b - a);
    const got = rows.map((row) => new Map(scores).get(row.id).toFixed(9));
    assert.deepEqual(got, best.slice(5, 15).map((score) => score.toFixed(9)));
  });

  for (const weights of [undefined, [3, 1], [0.5, 2]]) {
    test(`fused scores with weights ${weights}`, async () => {
      const last = weights ? `, [${weights}]` : "";
      const scores = `FullTextScore(c.text, 'cloud', 'drum'), FullTextScore(c.title, 'elbow')${last}`;
      const rows = await all(`SELECT TOP 20 c.id FROM c ORDER BY RANK RRF(${scores})`);
      checkOrder(rows, rrf([bm25("text", ["cloud", "drum"]), bm25("title", ["elbow"])], weights), 20);
    });
  }

  test("text and vectors", async () => {
    const query = "SELECT TOP 15 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'grape'), VectorDistance(c.v, [60, 12]))";
    checkOrder(await all(query), rrf([bm25("text", ["grape"]), distances([60, 12])]), 15);
  });

  test("a split does not change the results", async () => {
    for (const _ of [1, 2]) {
      await split(container);
      const query = "SELECT TOP 20 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'drum', 'elbow')";
      checkOrder(await all(query), bm25("text", ["drum", "elbow"]), 20);
      const near = "SELECT TOP 15 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'grape'), VectorDistance(c.v, [60, 12]))";
      checkOrder(await all(near), rrf([bm25("text", ["grape"]), distances([60, 12])]), 15);
    }
  });

  test("a sort direction is 400", async () => {
    await refused(all("SELECT TOP 3 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'grape') DESC"), 400);
  });
});
