"use strict";
// Snapshots of the whole account: a client works across restores, whatever it has cached.
// These tests use a separate server: a restore replaces all data of the account.

const assert = require("node:assert/strict");
const { CosmosClient, ChangeFeedStartFrom, StatusCodes } = require("@azure/cosmos");
const { after, before, describe, test } = require("node:test");
const { manage } = require("./management");
const { KEY, count, missing, unique } = require("./support");

const ENDPOINT = process.env.PLEIAD_ENDPOINT_RESTORED;

describe("snapshots", { skip: !ENDPOINT }, () => {
  const name = unique("clean");
  let client, database, container;
  const request = (method, path, body) => manage(ENDPOINT, KEY, method, path, body);
  const restore = () => request("POST", `snapshots/${name}/restore`);
  const split = () => request("POST", `containers/${database.id}/${container.id}/partitions/split?wait=true`, {});

  before(async () => {
    client = new CosmosClient({ endpoint: ENDPOINT, key: KEY });
    ({ database } = await client.databases.create({ id: unique("js") }));
    ({ container } = await database.containers.create({ id: "orders", partitionKey: "/pk", throughput: 400 }));
    for (const n of count(20)) await container.items.create({ id: `${n}`, pk: `${n % 5}`, n });
    await request("PUT", `snapshots/${name}`);
  });
  after(async () => {
    await request("DELETE", `snapshots/${name}`);
    await database.delete();
    client.dispose();
  });

  /** Reads the items in every way; all results must be equal. */
  async function everything() {
    const { resources: ordered } = await container.items.query("SELECT VALUE c.n FROM c ORDER BY c.n").fetchAll();
    const { resources: listed } = await container.items.readAll().fetchAll();
    assert.deepEqual(listed.map((item) => item.n).sort((a, b) => a - b), ordered);
    for (const n of ordered) assert.equal((await container.item(`${n}`, `${n % 5}`).read()).resource.n, n);
    return ordered;
  }

  test("a client sees the same data after each of twenty restores", async () => {
    for (const round of count(20)) {
      await container.items.create({ id: "100", pk: "0", n: 100 });
      await container.item("2", "2").delete();
      if (round % 3 === 1) await split();
      if (round % 3 === 2) await database.delete();
      await restore();
      assert.deepEqual(await everything(), count(20), `round ${round}`);
    }
  });

  test("a database is copied, also after a split", async () => {
    await split();
    const to = unique("copy");
    assert.equal((await request("POST", `databases/${database.id}/copy?wait=true`, { to })).status, "done");
    const copy = client.database(to).container(container.id);
    const { resources } = await copy.items.query("SELECT VALUE c.n FROM c ORDER BY c.n").fetchAll();
    assert.deepEqual(resources, count(20));
    await copy.item("3", "3").delete();
    assert.equal((await container.item("3", "3").read()).resource.n, 3);
    await client.database(to).delete();
    await restore();
  });

  test("a change feed continuation works after a restore", async () => {
    for (const n of count(10)) await container.items.create({ id: `later ${n}`, pk: "0", n: 1000 + n });
    await split();
    const drain = async (changeFeedStartFrom) => {
      const items = [];
      for await (const page of container.items.getChangeFeedIterator({ changeFeedStartFrom }).getAsyncIterator()) {
        if (page.statusCode === StatusCodes.NotModified) return { items, continuation: page.continuationToken };
        items.push(...page.result);
      }
    };
    const { items, continuation } = await drain(ChangeFeedStartFrom.Beginning());
    assert.equal(items.length, 30);
    await restore();
    await missing(container.item("later 1", "0"));
    await container.items.create({ id: "new", pk: "0", n: 2000 });
    const later = await drain(ChangeFeedStartFrom.Continuation(continuation));
    assert.deepEqual(later.items.map((item) => item.n), [2000]);
    await restore();
  });
});
