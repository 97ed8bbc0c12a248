"use strict";
// The change feed: the pull model in every way that the SDK offers, and the older iterators.

const assert = require("node:assert/strict");
const { ChangeFeedMode, ChangeFeedStartFrom, StatusCodes } = require("@azure/cosmos");
const { before, test } = require("node:test");
const { overBoth } = require("./support");

/** Reads until there are no more changes; returns the items and the continuation. */
async function drain(iterator) {
  const items = [];
  for await (const page of iterator.getAsyncIterator()) {
    if (page.statusCode === StatusCodes.NotModified) return { items, continuation: page.continuationToken };
    items.push(...page.result);
  }
}

const numbers = (items) => items.map((item) => item.n).sort((a, b) => a - b);
const REMAINING = [0, 1, 2, 5, 6, 7, 8, 9, 33];

for (const throughput of [400, 30000]) {
  overBoth(`change feed at ${throughput} RU/s`, (world) => {
    let container;
    const changes = (options) => drain(container.items.getChangeFeedIterator(options));
    before(async () => {
      container = await world.make("/pk", { throughput });
      for (let n = 0; n < 10; n++) await container.items.create({ id: `item ${n}`, pk: `key ${n}`, n });
      await container.item("item 3", "key 3").replace({ id: "item 3", pk: "key 3", n: 33 });
      await container.item("item 4", "key 4").delete();
    });

    test("from the beginning, in pages of every size", async () => {
      for (const maxItemCount of [1, 2, 100]) {
        const { items } = await changes({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning(), maxItemCount });
        assert.deepEqual(numbers(items), REMAINING);
        assert.ok(items.every((item) => item._lsn > 0));
      }
    });

    test("from now on, then from a continuation", async () => {
      const { items, continuation } = await changes({ changeFeedStartFrom: ChangeFeedStartFrom.Now() });
      assert.deepEqual(items, []);
      await container.items.create({ id: "later", pk: "key 3", n: 100 });
      const later = await changes({ changeFeedStartFrom: ChangeFeedStartFrom.Continuation(continuation) });
      assert.deepEqual(numbers(later.items), [100]);
      await container.item("later", "key 3").delete();
    });

    test("from a time", async () => {
      const hour = 3600 * 1000;
      const at = (ms) => ({ changeFeedStartFrom: ChangeFeedStartFrom.Time(new Date(ms)) });
      assert.deepEqual(numbers((await changes(at(Date.now() - hour))).items), REMAINING);
      assert.deepEqual((await changes(at(Date.now() + hour))).items, []);
    });

    test("of one key", async () => {
      const { items } = await changes({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning("key 3") });
      assert.deepEqual(numbers(items), [33]);
    });

    test("of every feed range", async () => {
      const all = [];
      for (const range of await container.getFeedRanges()) {
        all.push(...(await changes({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning(range) })).items);
      }
      assert.deepEqual(numbers(all), REMAINING);
    });

    test("the older iterator over one key", async () => {
      const iterator = container.items.changeFeed("key 5", { startFromBeginning: true });
      const page = await iterator.fetchNext();
      assert.deepEqual(numbers(page.result), [5]);
      assert.equal((await iterator.fetchNext()).statusCode, StatusCodes.NotModified);
      await container.items.create({ id: "more", pk: "key 5", n: 50 });
      const again = container.items.changeFeed("key 5", { continuation: page.headers.etag });
      assert.deepEqual(numbers((await again.fetchNext()).result), [50]);
      await container.item("more", "key 5").delete();
    });
  });
}

overBoth("change feed of hierarchical keys", (world) => {
  test("of a prefix of a key", async () => {
    const container = await world.make(["/tenant", "/user"]);
    for (const [n, tenant, user] of [[0, "a", "x"], [1, "a", "y"], [2, "b", "x"]]) {
      await container.items.create({ id: `${n}`, tenant, user, n });
    }
    const of = (key) => drain(container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning(key) }));
    assert.deepEqual(numbers((await of(["a"])).items), [0, 1]);
    assert.deepEqual(numbers((await of(["a", "y"])).items), [1]);
  });
});

overBoth("change feed of all versions and deletes", (world) => {
  for (const throughput of [400, 30000]) {
    test(`every change at ${throughput} RU/s`, async () => {
      const changeFeedPolicy = { retentionDuration: 10 };
      const container = await world.make("/pk", { throughput, changeFeedPolicy });
      const changeFeedMode = ChangeFeedMode.AllVersionsAndDeletes;
      const changes = (from) => drain(container.items.getChangeFeedIterator({ changeFeedMode, changeFeedStartFrom: from }));
      const { continuation } = await changes(ChangeFeedStartFrom.Now());
      await container.items.create({ id: "x", pk: "a", n: 1 });
      await container.item("x", "a").replace({ id: "x", pk: "a", n: 2 });
      await container.item("x", "a").delete();
      const { items } = await changes(ChangeFeedStartFrom.Continuation(continuation));
      assert.deepEqual(items.map((change) => change.metadata.operationType), ["create", "replace", "delete"]);
      assert.deepEqual(items.map((change) => change.current.n), [1, 2, undefined]);
      assert.equal(items[2].metadata.previousImageLSN, items[1].metadata.lsn);
      assert.ok(items.every((change) => !("previous" in change)));
    });
  }
});
