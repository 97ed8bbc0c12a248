"use strict";
// Pages and continuation tokens (S106), routing and metrics (S101, S102, S112), hierarchical keys, errors, new
// policies.

const assert = require("node:assert/strict");
const { before, test } = require("node:test");
const { setTimeout: sleep } = require("node:timers/promises");
const { OF_ONE_KEY, ONE_KEY, POLICY, RANGES, READINGS, THROUGHPUT, load, readings } = require("./dataset");
const { split } = require("./management");
const { count, overBoth, refused } = require("./support");

const TEXTS = [
  "SELECT VALUE c.id FROM c",
  "SELECT VALUE c.id FROM c WHERE c.metric > 10",
  "SELECT VALUE c.id FROM c ORDER BY c.n",
  "SELECT VALUE c.id FROM c ORDER BY c.metric DESC",
  "SELECT VALUE t FROM c JOIN t IN c.tags",
];
// What this SDK cannot resume across partitions, whatever the server does: it combines several sort keys with AND, and
// its tokens do not count TOP, OFFSET and LIMIT. The server resumes all of them within one key.
const WITHIN_ONE_KEY = [
  "SELECT VALUE c.id FROM c ORDER BY c.kind, c.metric DESC",
  "SELECT VALUE c.id FROM c OFFSET 2 LIMIT 6",
  "SELECT TOP 7 VALUE c.id FROM c ORDER BY c.n DESC",
  "SELECT VALUE c.id FROM c ORDER BY c.mixed",
  "SELECT DISTINCT VALUE c.kind FROM c",
  "SELECT c.floor, COUNT(1) AS many FROM c GROUP BY c.floor",
  "SELECT VALUE COUNT(1) FROM c",
];

overBoth("pages of queries", (world) => {
  let container;
  before(async () => {
    container = await readings(world);
  });

  /** Reads every page through a new client that gets only the token of the page before. */
  async function pageByPage(query, options, at = container, afterPage = async () => {}) {
    const rows = [];
    let continuationToken;
    let pages = 0;
    do {
      assert.ok(++pages < 300, "the pages do not end");
      const newClient = world.connect().database(world.database.id).container(at.id);
      const response = await newClient.items.query(query, { ...options, continuationToken }).fetchNext();
      rows.push(...(response.resources ?? []));
      continuationToken = response.continuationToken;
      await afterPage(pages);
    } while (continuationToken);
    return rows;
  }

  for (const query of [...TEXTS, ...WITHIN_ONE_KEY]) {
    for (const maxItemCount of [1, 2, 7]) {
      test(`S106: another client resumes within one key, pages of ${maxItemCount}: ${query}`, async () => {
        const options = { partitionKey: ONE_KEY, maxItemCount };
        const whole = (await container.items.query(query, { partitionKey: ONE_KEY }).fetchAll()).resources;
        assert.deepEqual(await pageByPage(query, options), whole);
      });
    }
  }

  for (const query of TEXTS) {
    for (const maxItemCount of [2, 7, 50]) {
      test(`S106: another client resumes across partitions, pages of ${maxItemCount}: ${query}`, async () => {
        const whole = (await container.items.query(query).fetchAll()).resources;
        assert.deepEqual(await pageByPage(query, { maxItemCount, enableQueryControl: true }), whole);
      });
    }
  }

  test("S106: another client resumes after splits", async () => {
    const divided = await world.make("/pk", { throughput: 12000, indexingPolicy: POLICY });
    await load(divided, READINGS.slice(0, 80));
    const splitTwice = async (page) => (page === 1 || page === 2) && split(divided);
    for (const query of [...TEXTS, ...WITHIN_ONE_KEY]) {
      const whole = (await divided.items.query(query, { partitionKey: ONE_KEY }).fetchAll()).resources;
      assert.deepEqual(await pageByPage(query, { partitionKey: ONE_KEY, maxItemCount: 1 }, divided), whole, query);
    }
    for (const query of TEXTS) {
      const whole = (await divided.items.query(query).fetchAll()).resources;
      const resumed = await pageByPage(query, { maxItemCount: 9, enableQueryControl: true }, divided, splitTwice);
      // Rows with equal sort keys may change places when they move to another partition.
      assert.deepEqual(resumed.sort(), whole.sort(), query);
    }
  });

  test("tokens keep to a limit of one kilobyte", async () => {
    for (const query of TEXTS) {
      const options = { partitionKey: ONE_KEY, maxItemCount: 2, continuationTokenLimitInKB: 1 };
      const { continuationToken } = await container.items.query(query, options).fetchNext();
      assert.ok(continuationToken.length <= 1024, query);
      assert.deepEqual(await pageByPage(query, options), (await container.items.query(query, { partitionKey: ONE_KEY }).fetchAll()).resources);
    }
  });

  test("every way to page through results", async () => {
    const query = "SELECT VALUE c.id FROM c ORDER BY c.n";
    const ids = READINGS.map((item) => item.id);
    const iterated = [];
    for await (const { resources } of container.items.query(query, { maxItemCount: 23 }).getAsyncIterator()) iterated.push(...resources);
    assert.deepEqual(iterated, ids);
    const iterator = container.items.query(query, { maxItemCount: 50, bufferItems: true });
    const fetched = [];
    while (iterator.hasMoreResults()) fetched.push(...((await iterator.fetchNext()).resources ?? []));
    assert.deepEqual(fetched, ids);
  });

  const partitionsOf = (plan) => [...plan.matchAll(/ on (\d+) partition/g)].reduce((total, [, many]) => total + Number(many), 0);
  /** The number of partitions in the query plan header. The SDK exposes a page's headers only through a plugin. */
  async function partitionsRead(at, query) {
    const plans = [];
    const on = "request";
    const plugin = async (context, _, next) => {
      const response = await next(context);
      if (response.headers["x-pleiad-query-plan"]) plans.push(response.headers["x-pleiad-query-plan"]);
      return response;
    };
    const client = world.connect({ plugins: [{ on, plugin }] });
    await client.database(world.database.id).container(at.id).items.query(query, { populateIndexMetrics: true, maxItemCount: 1000 }).fetchAll();
    return plans.reduce((total, plan) => total + partitionsOf(plan), 0);
  }

  test("S101 S102 S112: a filter on the key reads one partition, a filter without it reads all", async () => {
    assert.equal(await partitionsRead(container, `SELECT * FROM c WHERE c.pk = '${ONE_KEY}' AND c.kind = 'humidity'`), 1);
    assert.equal(await partitionsRead(container, "SELECT * FROM c WHERE c.kind = 'humidity'"), RANGES);
    const byId = await world.make("/id", { throughput: THROUGHPUT });
    await load(byId, READINGS.slice(0, 20));
    assert.equal(await partitionsRead(byId, "SELECT * FROM c WHERE c.id = '0007'"), 1);
  });

  test("query metrics, index metrics and charges", async () => {
    const options = { partitionKey: ONE_KEY, populateQueryMetrics: true, populateIndexMetrics: true };
    const response = await container.items.query("SELECT * FROM c WHERE c.metric > 10", options).fetchNext();
    const metrics = JSON.stringify(response.queryMetrics);
    assert.match(metrics, /outputDocumentCount|retrievedDocumentCount/);
    assert.match(response.indexMetrics, /\/pk\/\?/);
    assert.ok(response.requestCharge > 0);
    const all = await container.items.query("SELECT * FROM c ORDER BY c.n", { populateQueryMetrics: true, maxItemCount: 1000 }).fetchAll();
    assert.ok(all.requestCharge > response.requestCharge);
  });

  test("a prefix of a hierarchical key", async () => {
    const people = count(120).map((n) => ({ id: String(n), tenant: `t${n % 3}`, user: `u${n % 4}`, session: n % 5, n }));
    const tenants = await world.make(["/tenant", "/user", "/session"], { throughput: THROUGHPUT });
    await load(tenants, people);
    const levels = (one) => [one.tenant, one.user, one.session];
    for (const prefix of [["t0"], ["t1", "u2"], ["t2", "u3", 4], ["t0", "missing"]]) {
      const expected = people.filter((one) => prefix.every((level, at) => levels(one)[at] === level)).map((one) => one.n);
      const numbers = (await tenants.items.query("SELECT VALUE c.n FROM c", { partitionKey: prefix, maxItemCount: 7 }).fetchAll()).resources;
      assert.deepEqual(numbers.sort((a, b) => a - b), expected);
    }
    const filtered = await tenants.items.query("SELECT VALUE c.n FROM c WHERE c.tenant = 't1' AND c.user = 'u2' ORDER BY c.n").fetchAll();
    assert.deepEqual(filtered.resources, people.filter((one) => one.tenant === "t1" && one.user === "u2").map((one) => one.n));
  });

  const INVALID = [
    ["SELECT * FORM c", "SC1001"],
    ["SELECT c.value FROM c", "SC1001"],
    ["SELECT * FROM c WHERE d.n = 1", "SC2001"],
    ["SELECT NO_SUCH(c.n) FROM c", "SC2005"],
    ["SELECT ABS(c.n, 1) FROM c", "SC2050"],
    ["SELECT TOP @n * FROM c", "SC2060"],
  ];
  for (const [query, code] of INVALID) {
    test(`400: ${query}`, async () => {
      for (const options of [{}, { partitionKey: ONE_KEY }]) {
        const error = await refused(container.items.query(query, options).fetchAll(), 400);
        assert.ok(JSON.stringify(error.body ?? error.message).includes(code), error.message);
      }
    });
  }

  test("an invalid token is 400", async () => {
    await refused(container.items.query(TEXTS[0], { partitionKey: ONE_KEY, continuationToken: "made up" }).fetchNext(), 400);
  });

  test("a new indexing policy is applied, and queries use it", async () => {
    const unindexed = await world.make("/pk", { throughput: THROUGHPUT, indexingPolicy: { indexingMode: "none", automatic: false } });
    await load(unindexed, OF_ONE_KEY);
    await refused(unindexed.items.query("SELECT * FROM c ORDER BY c.n").fetchAll(), 400);
    const { resource } = await unindexed.read();
    await unindexed.replace({ ...resource, indexingPolicy: POLICY });
    const progress = async () => (await unindexed.read({ populateQuotaInfo: true })).headers["x-ms-documentdb-collection-index-transformation-progress"];
    while (Number(await progress()) < 100) await sleep(50);
    const { resources } = await unindexed.items.query("SELECT VALUE c.n FROM c ORDER BY c.n").fetchAll();
    assert.deepEqual(resources, OF_ONE_KEY.map((item) => item.n));
  });

  test("queries over databases, containers and offers still work", async () => {
    const byId = { query: "SELECT * FROM r WHERE r.id = @id", parameters: [{ name: "@id", value: world.database.id }] };
    assert.equal((await world.client.databases.query(byId).fetchAll()).resources[0].id, world.database.id);
    const containers = await world.database.containers.query(`SELECT * FROM r WHERE r.id = '${container.id}'`).fetchAll();
    assert.deepEqual(containers.resources.map(({ id }) => id), [container.id]);
    const { resource } = await container.read();
    const offers = await world.client.offers.query(`SELECT * FROM r WHERE r.resource = '${resource._self}'`).fetchAll();
    assert.equal(offers.resources[0].content.offerThroughput, THROUGHPUT);
  });
});
