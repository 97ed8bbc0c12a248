"use strict";
// Operations on single items: S1, S6, S10 to S13, S16, S20, S21, S23, S29, S95 to S98, S100; etags, IDs, sizes,
// charges.

const assert = require("node:assert/strict");
const { before, test } = require("node:test");
const { SYSTEM_PROPERTIES, count, missing, overBoth, plain, refused } = require("./support");

const READING = {
  id: "XMS-001-FE24C",
  deviceId: "XMS-0001",
  metricType: "Temperature",
  unit: "Fahrenheit",
  metricValue: 105.0,
  readingTime: "2016-01-20T10:30:00.000Z",
};

overBoth("items", (world) => {
  let container;
  before(async () => {
    container = await world.make("/pk");
  });

  test("S95 S97 S98 S100: create, read, replace and delete the sample document", async () => {
    const readings = await world.make("/deviceId");
    const { resource: created, statusCode, item } = await readings.items.create(READING);
    assert.equal(statusCode, 201);
    for (const name of SYSTEM_PROPERTIES) assert.ok(name in created, name);
    assert.deepEqual(plain((await item.read()).resource), READING);

    const { resource: replaced } = await item.replace({ ...READING, metricValue: 104 });
    assert.equal(replaced.metricValue, 104);
    assert.equal(replaced._rid, created._rid);
    assert.notEqual(replaced._etag, created._etag);

    assert.equal((await item.delete()).statusCode, 204);
    await missing(item);
    await refused(item.delete(), 404);
    await refused(item.replace(READING), 404);
  });

  test("upsert creates (201), then replaces (200)", async () => {
    const first = await container.items.upsert({ id: "upsert", pk: "a", n: 1 });
    const second = await container.items.upsert({ id: "upsert", pk: "a", n: 2 });
    assert.deepEqual([first.statusCode, second.statusCode], [201, 200]);
    assert.equal(second.resource._rid, first.resource._rid);
    assert.equal((await container.item("upsert", "a").read()).resource.n, 2);
  });

  test("S11: an item needs an id", async () => {
    await refused(container.items.create({ pk: "a" }, { disableAutomaticIdGeneration: true }), 400);
    const { resource } = await container.items.create({ pk: "a" });
    assert.equal((await container.item(resource.id, "a").read()).statusCode, 200);
  });

  test("S12 S13: an id is unique within one key; both together are the identity", async () => {
    for (const [pk, id] of [["Marketing", "0001"], ["Marketing", "0002"], ["Sales", "0001"]]) {
      assert.equal((await container.items.create({ id, pk })).statusCode, 201);
    }
    await refused(container.items.create({ id: "0001", pk: "Marketing" }), 409);
    assert.equal((await container.item("0001", "Sales").read()).resource.pk, "Sales");
    await missing(container.item("0001", "Other"));
  });

  test("S16: the key of an item cannot be changed", async () => {
    await container.items.create({ id: "fixed", pk: "a" });
    await refused(container.item("fixed", "a").replace({ id: "fixed", pk: "b" }), 400);
    assert.equal((await container.item("fixed", "a").read()).resource.pk, "a");
  });

  test("S6 S20 S21 S23: id as the partition key", async () => {
    const byId = await world.make("/id");
    await byId.items.create({ id: "x", colour: "red" });
    assert.equal((await byId.item("x", "x").read()).resource.colour, "red");
    await refused(byId.items.create({ id: "x", colour: "blue" }), 409);
    await byId.item("x", "x").delete();
    await missing(byId.item("x", "x"));
  });

  test("S1: a container stores items of different shapes", async () => {
    const shapes = [{ id: "s1", pk: "shapes", text: "x" }, { id: "s2", pk: "shapes", list: [1, { deep: true }] }, { id: "s3", pk: "shapes" }];
    for (const shape of shapes) await container.items.create({ ...shape });
    for (const shape of shapes) assert.deepEqual(plain((await container.item(shape.id, "shapes").read()).resource), shape);
  });

  test("a missing item and a missing container are 404", async () => {
    await missing(container.item("missing", "a"));
    await missing(world.database.container("missing").item("x", "a"));
    await refused(world.database.container("missing").items.create({ id: "x", pk: "a" }), 404);
  });

  for (const value of ["", "a", "7", "é", "日本", "😀", 'q"uo\\te', 0, 7, -1.5, 1e300, true, false, null]) {
    test(`S10 S29: the key ${JSON.stringify(value)}`, async () => {
      await container.items.create({ id: "typed", pk: value });
      assert.equal((await container.item("typed", value).read()).resource.pk, value);
      await container.item("typed", value).replace({ id: "typed", pk: value, n: 1 });
      assert.equal((await container.item("typed", value).read()).resource.n, 1);
      await container.item("typed", value).delete();
      await missing(container.item("typed", value));
    });
  }

  test("S10: a missing key property is a separate key, different from null", async () => {
    await container.items.create({ id: "keyless" });
    assert.equal((await container.item("keyless").read()).resource.id, "keyless");
    await missing(container.item("keyless", null));
    await container.item("keyless").delete();
    await missing(container.item("keyless"));
  });

  test("If-Match: the current etag writes, an old one is 412", async () => {
    const { resource: old } = await container.items.create({ id: "etag", pk: "a" });
    const ifMatch = (condition) => ({ accessCondition: { type: "IfMatch", condition } });
    const item = container.item("etag", "a");
    await item.replace({ id: "etag", pk: "a", n: 1 }, ifMatch(old._etag));
    await refused(item.replace({ id: "etag", pk: "a", n: 2 }, ifMatch(old._etag)), 412);
    await refused(item.delete(ifMatch(old._etag)), 412);
    await refused(container.items.upsert({ id: "etag", pk: "a", n: 2 }, ifMatch(old._etag)), 412);
    assert.equal((await item.read()).resource.n, 1);
  });

  test("If-None-Match: an unchanged item is 304 without a body", async () => {
    const { etag } = await container.items.create({ id: "unchanged", pk: "a" });
    const read = await container.item("unchanged", "a").read({ accessCondition: { type: "IfNoneMatch", condition: etag } });
    assert.equal(read.statusCode, 304);
    assert.ok(!read.resource);
    await container.items.upsert({ id: "unchanged", pk: "a", n: 1 });
    const changed = await container.item("unchanged", "a").read({ accessCondition: { type: "IfNoneMatch", condition: etag } });
    assert.equal(changed.resource.n, 1);
  });

  test("Prefer: return=minimal results without a body", async () => {
    await container.items.create({ id: "minimal", pk: "a" });
    const item = container.item("minimal", "a");
    const response = await item.replace({ id: "minimal", pk: "a", n: 1 }, { initialHeaders: { prefer: "return=minimal" } });
    assert.equal(response.statusCode, 200);
    assert.ok(!response.resource);
    assert.equal(response.etag, (await item.read()).resource._etag);
  });

  const IDS = ["a b", " leading", "é", "日本語", "😀👩‍👩‍👧", "!@$%^&*()-~`'_[]{}|;:,.<>", "a%20b", "100%", "a+b", "a=b&c=d", '"quoted"', "x".repeat(255)];
  for (const id of IDS) {
    test(`the id ${id.slice(0, 30)}`, async () => {
      await container.items.create({ id, pk: "ids" });
      assert.equal((await container.item(id, "ids").read()).resource.id, id);
      await container.item(id, "ids").replace({ id, pk: "ids", n: 1 });
      await container.item(id, "ids").delete();
      await missing(container.item(id, "ids"));
    });
  }

  test("just under 2 MB is fine, just over is 413", async () => {
    const item = (bytes) => ({ id: "large", pk: "a", pad: "x".repeat(bytes - 40) });
    const limit = 2 * 1024 * 1024;
    await container.items.create(item(limit - 1024));
    assert.deepEqual(plain((await container.item("large", "a").read()).resource), item(limit - 1024));
    await refused(container.items.upsert(item(limit + 1024)), 413);
    await container.item("large", "a").delete();
    await refused(container.items.create(item(limit + 1024)), 413);
  });

  test("S87 S88 S91: charges", async () => {
    const charges = [];
    for (const kilobytes of [1, 4, 16, 64, 256]) {
      const id = `${kilobytes} KB`;
      // About 300 bytes are left for the server's own properties.
      const { requestCharge: written } = await container.items.create({ id, pk: "sized", pad: "x".repeat(kilobytes * 1024 - 300) });
      const { requestCharge: read } = await container.item(id, "sized").read();
      assert.ok(written > read);
      charges.push(read);
    }
    assert.equal(Math.round(charges[0] * 100) / 100, 1);
    for (let i = 1; i < charges.length; i++) assert.ok(charges[i] > charges[i - 1], String(charges));
  });

  test("JSON is read unchanged", async () => {
    const value = {
      numbers: [0, -1, 0.1, 1e21, Number.MAX_VALUE, Number.MIN_VALUE, 2 ** 53, 0.1 + 0.2],
      strings: ["", 'q"\\/', "\b\f\n\r\t", "\u0000\u001f\u007f\u2028\ufeff", "日本 😀"],
      nested: [null, true, [], {}, [[[]]], { a: { "": { "a.b": { "😀": [1, [2]] } } } }],
    };
    await container.items.create({ id: "json", pk: "a", value });
    const { resource } = await container.item("json", "a").read();
    assert.deepEqual(resource.value, value);
    assert.deepEqual(Object.keys(plain(resource)), ["id", "pk", "value"]);
  });

  test("session tokens: a read has the token of the write before it", async () => {
    const quiet = await world.make("/pk");
    const token = (response) => response.headers["x-ms-session-token"];
    const written = token(await quiet.items.create({ id: "x", pk: "a" }));
    assert.match(written, /^0:[^#]+#\d+/);
    assert.equal(token(await quiet.item("x", "a").read()), written);
    const other = world.connect().database(world.database.id).container(quiet.id);
    assert.equal((await other.item("x", "a").read({ sessionToken: written })).resource.id, "x");
  });

  test("1,000 concurrent requests", async () => {
    const wide = await world.make("/pk", { throughput: 18000 });
    const created = await Promise.all(count(1000).map((n) => wide.items.create({ id: String(n), pk: n, n })));
    assert.deepEqual(created.map(({ resource }) => resource.n), count(1000));
    const read = await Promise.all(count(1000).map((n) => wide.item(String(n), n).read()));
    assert.deepEqual(read.map(({ resource }) => resource.n), count(1000));
  });

  test("of 100 concurrent creates of one item, one succeeds", async () => {
    const results = await Promise.allSettled(count(100).map((n) => container.items.create({ id: "race", pk: "a", n })));
    assert.equal(results.filter(({ status }) => status === "fulfilled").length, 1);
    for (const { reason } of results.filter(({ status }) => status === "rejected")) assert.equal(reason.code, 409);
  });

  test("a container that was deleted and created again is empty and works", async () => {
    const old = await world.make("/pk");
    await old.items.create({ id: "x", pk: "a" });
    const { resource: before } = await old.read();
    const otherClient = world.connect().database(world.database.id);
    await otherClient.container(old.id).delete();
    await otherClient.containers.create({ id: old.id, partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } });
    await missing(old.item("x", "a"));
    await old.items.create({ id: "x", pk: "a" });
    assert.equal((await old.item("x", "a").read()).statusCode, 200);
    assert.notEqual((await old.read()).resource._rid, before._rid);
  });
});
