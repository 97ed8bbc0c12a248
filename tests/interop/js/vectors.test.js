"use strict";
// Vector search: ordering by distance over several partitions and after a split.

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
  const run = async (query, options = {}) => {
    const spec = { query, parameters: [{ name: "@v", value: to }] };
    return (await container.items.query(spec, { forceQueryPlan: true, ...options }).fetchAll()).resources;
  };
  const close = (got, want) => {
    assert.equal(got.length, want.length);
    got.forEach((d, at) => assert.ok(Math.abs(d - want[at]) < 1e-6, `${got} instead of ${want}`));
  };
  const expected = (metric, sign) => count(ITEMS).map((n) => metric(vector(n + 1), to)).sort((a, b) => sign * (a - b));
  const checkNearest = async () => {
    const text = (path) => `SELECT TOP 10 VALUE VectorDistance(c.${path}, @v) FROM c ORDER BY VectorDistance(c.${path}, @v)`;
    close(await run(text("near")), expected(euclidean, 1).slice(0, 10));
    close(await run(text("alike")), expected(cosine, -1).slice(0, 10));
  };

  test("rows are ordered by distance over all partitions", checkNearest);

  test("OFFSET and LIMIT, and pages", async () => {
    const text = "SELECT VALUE VectorDistance(c.near, @v) FROM c ORDER BY VectorDistance(c.near, @v) OFFSET 2 LIMIT 9";
    close(await run(text, { maxItemCount: 4 }), expected(euclidean, 1).slice(2, 11));
  });

  test("with one partition key the server sorts", async () => {
    const text = "SELECT VALUE VectorDistance(c.near, @v) FROM c ORDER BY VectorDistance(c.near, @v)";
    const { resources } = await container.items
      .query({ query: text, parameters: [{ name: "@v", value: to }] }, { partitionKey: "3" })
      .fetchAll();
    const want = count(ITEMS).map((n) => n + 1).filter((n) => n % 9 === 3).map((n) => euclidean(vector(n), to));
    close(resources, want.sort((a, b) => a - b));
  });

  test("a sort direction is 400", async () => {
    const error = await refused(run("SELECT TOP 1 c.id FROM c ORDER BY VectorDistance(c.near, @v) ASC"), 400);
    assert.match(error.message, /Specifying a sorting order/);
  });

  test("a split does not change the results", async () => {
    const { offer, resource } = await container.readOffer();
    resource.content.offerThroughput = 60000;
    await offer.replace(resource);
    const ranges = async () => (await container.readPartitionKeyRanges().fetchAll()).resources.length;
    for (const _ of count(200)) {
      await checkNearest();
      if ((await ranges()) > RANGES) break;
      await new Promise((done) => setTimeout(done, 100));
    }
    assert.ok((await ranges()) > RANGES, "nothing was split");
    await checkNearest();
  });
});
