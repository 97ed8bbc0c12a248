"use strict";
// Creating, reading and deleting databases and containers, and finding them by ID: S3 to S9, S15.

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { key, missing, overBoth, refused, unique } = require("./support");

const byId = (id) => ({ query: "SELECT * FROM root r WHERE r.id=@id", parameters: [{ name: "@id", value: id }] });
const ids = (feed) => feed.resources.map((resource) => resource.id);

async function pages(iterator) {
  const seen = [];
  while (iterator.hasMoreResults()) seen.push((await iterator.fetchNext()).resources ?? []);
  return seen;
}

overBoth("databases", (world) => {
  test("create, read, delete", async () => {
    const id = unique("db");
    const { database, resource, statusCode } = await world.client.databases.create({ id });
    assert.equal(statusCode, 201);
    for (const name of ["_rid", "_self", "_etag", "_ts", "_colls", "_users"]) assert.ok(name in resource, name);
    assert.equal((await database.read()).resource._rid, resource._rid);
    assert.equal((await database.delete()).statusCode, 204);
    await refused(database.read(), 404);
    await refused(database.delete(), 404);
  });

  test("an existing name is 409", async () => {
    await refused(world.client.databases.create({ id: world.database.id }), 409);
  });

  test("createIfNotExists creates once", async () => {
    const { resource } = await world.client.databases.createIfNotExists({ id: world.database.id });
    assert.equal(resource._rid, (await world.database.read()).resource._rid);
  });

  test("list contains it, in one page and in pages of one", async () => {
    assert.ok(ids(await world.client.databases.readAll().fetchAll()).includes(world.database.id));
    const seen = await pages(world.client.databases.readAll({ maxItemCount: 1 }));
    assert.ok(seen.every((page) => page.length <= 1));
    assert.ok(seen.flat().some((database) => database.id === world.database.id));
  });

  test("query by id", async () => {
    assert.deepEqual(ids(await world.client.databases.query(byId(world.database.id)).fetchAll()), [world.database.id]);
    assert.deepEqual(ids(await world.client.databases.query(byId(unique("unknown"))).fetchAll()), []);
  });

  for (const suffix of ["😀", "हिन्दी", "ü ö", "!@$%^&*()-~`'_[]{}|;:,.<>"]) {
    test(`a name with ${suffix}`, async () => {
      const { database } = await world.client.databases.create({ id: unique("name") + suffix });
      assert.equal((await database.read()).resource.id, database.id);
      await database.delete();
    });
  }
});

overBoth("containers", (world) => {
  test("create, read, delete", async () => {
    const container = await world.make("/pk");
    const { resource } = await container.read();
    for (const name of ["_rid", "_self", "_etag", "_ts", "_docs", "_sprocs", "_triggers", "_udfs", "_conflicts"]) {
      assert.ok(name in resource, name);
    }
    assert.equal((await container.delete()).statusCode, 204);
    await refused(container.read(), 404);
  });

  test("S3: the partition key is stored exactly", async () => {
    for (const definition of [key("/deviceId"), key("/deviceId", 1), key(["/a", "/b", "/c"])]) {
      const container = await world.make(definition);
      assert.deepEqual((await container.read()).resource.partitionKey.paths, definition.paths);
      assert.equal((await container.read()).resource.partitionKey.kind, definition.kind);
    }
  });

  test("a definition may consist of the path alone", async () => {
    const container = await world.make({ paths: ["/pk"] });
    assert.deepEqual((await container.read()).resource.partitionKey.paths, ["/pk"]);
    await container.items.create({ id: "x", pk: "a" });
    assert.equal((await container.item("x", "a").read()).resource.id, "x");
  });

  test("an existing name is 409, but not for createIfNotExists", async () => {
    const container = await world.make("/pk");
    await refused(world.database.containers.create({ id: container.id, partitionKey: key("/pk") }), 409);
    const again = await world.database.containers.createIfNotExists({ id: container.id, partitionKey: key("/pk") });
    assert.equal(again.statusCode, 200);
  });

  test("list in pages, query by id", async () => {
    const created = [await world.make("/pk"), await world.make("/pk"), await world.make("/pk")];
    const seen = await pages(world.database.containers.readAll({ maxItemCount: 2 }));
    assert.ok(seen.every((page) => page.length <= 2));
    for (const { id } of created) assert.ok(seen.flat().some((container) => container.id === id));
    assert.deepEqual(ids(await world.database.containers.query(byId(created[0].id)).fetchAll()), [created[0].id]);
  });

  test("replace changes the policy and keeps the rid", async () => {
    const container = await world.make("/pk");
    const { resource: before } = await container.read();
    const indexingPolicy = { includedPaths: [{ path: "/*" }], excludedPaths: [{ path: "/big/*" }] };
    const { resource: after } = await container.replace({ id: container.id, partitionKey: before.partitionKey, indexingPolicy });
    assert.ok(after.indexingPolicy.excludedPaths.some(({ path }) => path === "/big/*"));
    assert.equal(after._rid, before._rid);
  });

  test("S15: the partition key cannot be changed in place", async () => {
    const container = await world.make("/pk");
    await refused(container.replace({ id: container.id, partitionKey: key("/other") }), 400);
    assert.deepEqual((await container.read()).resource.partitionKey.paths, ["/pk"]);
  });

  test("S8: a key path has no wildcard", async () => {
    for (const path of ["/department/?", "/department/*"]) await refused(world.make(path), 400);
  });

  const paths = [
    ["/department", { department: "here" }], // S4
    ["/properties/name", { properties: { name: "here" } }], // S5
    ['/"department name"', { "department name": "here" }], // S7
    ["/user_Id2/sub_1", { user_Id2: { sub_1: "here" } }], // S9
  ];
  for (const [path, item] of paths) {
    test(`S4 S5 S7 S9: the path ${path} finds the value`, async () => {
      const container = await world.make(path);
      await container.items.create({ id: "x", ...item });
      assert.equal((await container.item("x", "here").read()).resource.id, "x");
      await missing(container.item("x", "elsewhere"));
    });
  }

  test("create in a missing database is 404", async () => {
    await refused(world.client.database(unique("missing")).containers.create({ id: "c", partitionKey: key("/pk") }), 404);
  });
});
