"use strict";
// Vector search: the nearest first, over several partitions and across a split.

const assert = require("node:assert/strict");
const { before, test } = require("node:test");
const { count, overBoth, refused } = require("./support");

const ITEMS = 60;
const RANGES = 5;
const vectorEmbeddingPolicy = {
  vectorEmbeddings: [
    { path: "/near", dataType: "float32", dimensions: 3, distanceFunction: "euclidean" },
    { path: "/alike", dataType: "float32", dimensions: 3, distanceFunction: "cosine" },
  ],
};
const indexingPolicy = {
  includedPaths: [{ path: "/*" }],
  excludedPaths: [{ path: "/near/*" }, { path: "/alike/*" }],
  vectorIndexes: [
    { path: "/near", type: "flat" },
    { path: "/alike", type: "diskANN" },
  ],
};

const vector = (n) => [n % 7, (n * 5) % 11, (n * 3) % 13];
const item = (n) => ({ id: `${n}`, pk: `${n % 9}`, n, near: vector(n), alike: vector(n) });
const sum = (a, b, term) => a.reduce((sum, x, at) => sum + term(x, b[at]), 0);
const euclidean = (a, b) => Math.sqrt(sum(a, b, (x, y) => (x - y) ** 2));
const cosine = (a, b) => sum(a, b, (x, y) => x * y) / Math.sqrt(sum(a, a, (x, y) => x * y) * sum(b, b, (x, y) => x * y));

overBoth("vectors", (world) => {
  let container;
  before(async () => {
    container = await world.make("/pk", { vectorEmbeddingPolicy, indexingPolicy, throughput: 30000 });
    for (const n of count(ITEMS)) await container.items.create(item(n + 1));
  });
  const to = [3, 4, 5];
  const ask = async (query, options = {}) => {
    const asked = { query, parameters: [{ name: "@v", value: to }] };
    return (await container.items.query(asked, { forceQueryPlan: true, ...options }).fetchAll()).resources;
  };
  const close = (got, want) => {
    assert.equal(got.length, want.length);
    got.forEach((d, at) => assert.ok(Math.abs(d - want[at]) < 1e-6, `${got} instead of ${want}`));
  };
  const wanted = (measure, way) => count(ITEMS).map((n) => measure(vector(n + 1), to)).sort((a, b) => way * (a - b));
  const nearest = async () => {
    const text = (path) => `SELECT TOP 10 VALUE VectorDistance(c.${path}, @v) FROM c ORDER BY VectorDistance(c.${path}, @v)`;
    close(await ask(text("near")), wanted(euclidean, 1).slice(0, 10));
    close(await ask(text("alike")), wanted(cosine, -1).slice(0, 10));
  };

  test("the nearest come first over all partitions", nearest);

  test("OFFSET and LIMIT, and pages", async () => {
    const text = "SELECT VALUE VectorDistance(c.near, @v) FROM c ORDER BY VectorDistance(c.near, @v) OFFSET 2 LIMIT 9";
    close(await ask(text, { maxItemCount: 4 }), wanted(euclidean, 1).slice(2, 11));
  });

  test("with one partition key the server does all of it", async () => {
    const text = "SELECT VALUE VectorDistance(c.near, @v) FROM c ORDER BY VectorDistance(c.near, @v)";
    const { resources } = await container.items
      .query({ query: text, parameters: [{ name: "@v", value: to }] }, { partitionKey: "3" })
      .fetchAll();
    const want = count(ITEMS).map((n) => n + 1).filter((n) => n % 9 === 3).map((n) => euclidean(vector(n), to));
    close(resources, want.sort((a, b) => a - b));
  });

  test("a direction is 400", async () => {
    const error = await refused(ask("SELECT TOP 1 c.id FROM c ORDER BY VectorDistance(c.near, @v) ASC"), 400);
    assert.match(error.message, /Specifying a sorting order/);
  });

  test("a split changes no answer", async () => {
    const { offer, resource } = await container.readOffer();
    resource.content.offerThroughput = 60000;
    await offer.replace(resource);
    const ranges = async () => (await container.readPartitionKeyRanges().fetchAll()).resources.length;
    for (const _ of count(200)) {
      await nearest();
      if ((await ranges()) > RANGES) break;
      await new Promise((done) => setTimeout(done, 100));
    }
    assert.ok((await ranges()) > RANGES, "nothing was split");
    await nearest();
  });
});
