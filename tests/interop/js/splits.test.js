"use strict";
// Splits and merges are invisible to clients that use partition keys, for every feature of a container.

const assert = require("node:assert/strict");
const { ChangeFeedMode, ChangeFeedStartFrom, StatusCodes } = require("@azure/cosmos");
const { test } = require("node:test");
const { merge, split } = require("./management");
const { count, overBoth, refused } = require("./support");

const numbers = (items) => items.map((item) => item.n).sort((a, b) => a - b);

overBoth("splits", (world) => {
  const fill = async (container, from, to) => {
    for (const n of count(to - from)) await container.items.create({ id: `${from + n}`, pk: `${from + n}`, n: from + n });
  };

  /** Reads until there are no more changes; `between` runs after the first page. */
  async function drain(container, options, between = async () => {}) {
    const items = [];
    let pages = 0;
    for await (const page of container.items.getChangeFeedIterator({ maxItemCount: 5, ...options }).getAsyncIterator()) {
      if (page.statusCode === StatusCodes.NotModified) return { items, continuation: page.continuationToken };
      items.push(...page.result);
      if (pages++ === 0) await between();
    }
  }

  test("a change feed that is read during a split returns every change once", async () => {
    const container = await world.make("/pk", { throughput: 400 });
    await fill(container, 0, 40);
    const start = { changeFeedStartFrom: ChangeFeedStartFrom.Beginning() };
    const { items, continuation } = await drain(container, start, () => split(container));
    assert.deepEqual(numbers(items), count(40));
    await fill(container, 40, 50);
    await merge(container);
    await fill(container, 50, 60);
    const later = await drain(container, { changeFeedStartFrom: ChangeFeedStartFrom.Continuation(continuation) });
    assert.deepEqual(numbers(later.items), count(20).map((n) => 40 + n));
  });

  test("the feed of all versions and deletes continues after a split", async () => {
    const container = await world.make("/pk", { throughput: 400, changeFeedPolicy: { retentionDuration: 60 } });
    const mode = { changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes };
    const { continuation } = await drain(container, { ...mode, changeFeedStartFrom: ChangeFeedStartFrom.Now() });
    await fill(container, 0, 20);
    await container.item("3", "3").delete();
    const from = { ...mode, changeFeedStartFrom: ChangeFeedStartFrom.Continuation(continuation) };
    const { items } = await drain(container, from, async () => {
      await split(container);
      await container.item("4", "4").delete();
    });
    const kinds = items.map((change) => change.metadata.operationType);
    assert.equal(kinds.filter((kind) => kind === "create").length, 20);
    assert.equal(kinds.filter((kind) => kind === "delete").length, 2);
  });

  test("unique keys hold after splits and merges", async () => {
    const uniqueKeyPolicy = { uniqueKeys: [{ paths: ["/mail"] }] };
    const container = await world.make("/pk", { throughput: 400, uniqueKeyPolicy });
    for (const n of count(20)) await container.items.create({ id: `${n}`, pk: `${n}`, mail: "x", n });
    for (const step of [split, split, merge]) {
      await step(container);
      for (const n of count(20)) await refused(container.items.create({ id: "other", pk: `${n}`, mail: "x" }), 409);
    }
    const { resources } = await container.items.readAll().fetchAll();
    assert.deepEqual(numbers(resources), count(20));
  });

  test("a paged query continues after a split", async () => {
    const container = await world.make("/pk", { throughput: 400 });
    await fill(container, 0, 40);
    const pages = container.items.query("SELECT * FROM c ORDER BY c.n", { maxItemCount: 7 });
    const seen = [...(await pages.fetchNext()).resources];
    await split(container);
    while (pages.hasMoreResults()) seen.push(...((await pages.fetchNext()).resources ?? []));
    assert.deepEqual(seen.map((item) => item.n), count(40));
  });
});
