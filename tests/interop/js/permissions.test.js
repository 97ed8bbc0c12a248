"use strict";
// Users, permissions and resource tokens: S131.

const assert = require("node:assert/strict");
const { before, test } = require("node:test");
const { split } = require("./management");
const { overBoth, refused, unique } = require("./support");

overBoth("permissions", (world) => {
  let container;
  let user;
  before(async () => {
    container = await world.make("/pk", { throughput: 12000 });
    for (const pk of ["a", "b"]) await container.items.create({ id: "1", pk });
    ({ user } = await world.database.users.create({ id: unique("u") }));
  });

  const link = (...more) => ["dbs", world.database.id, "colls", container.id, ...more].join("/");
  const permit = async (permissionMode, resource, more = {}) =>
    (await user.permissions.create({ id: unique("p"), permissionMode, resource, ...more })).resource;
  const withToken = (permission) =>
    world
      .connect({ key: undefined, resourceTokens: { [permission.resource]: permission._token } })
      .database(world.database.id)
      .container(container.id);

  test("S131: read and all permissions for a container", async () => {
    const permission = await permit("Read", link());
    const reader = withToken(permission);
    for (const _ of [1, 2]) {
      for (const pk of ["a", "b"]) assert.equal((await reader.item("1", pk).read()).resource.id, "1");
      assert.equal((await reader.items.readAll().fetchAll()).resources.length, 2);
      await split(container);
    }
    await refused(reader.items.create({ id: "2", pk: "a" }), 403);
    await refused(reader.delete(), 403);
    await user.permission(permission.id).delete();
    const writer = withToken(await permit("All", link()));
    await writer.items.create({ id: "2", pk: "a" });
    await writer.item("2", "a").delete();
    assert.equal((await writer.replace({ ...(await writer.read()).resource, defaultTtl: -1 })).resource.defaultTtl, -1);
  });

  test("S131: the mode All includes the container itself", async () => {
    const own = await world.make("/pk");
    const permission = await permit("All", `dbs/${world.database.id}/colls/${own.id}`);
    const restricted = world.connect({ key: undefined, resourceTokens: { [permission.resource]: permission._token } });
    await restricted.database(world.database.id).container(own.id).delete();
    await refused(own.read(), 404);
  });

  test("S131: permission for one partition key", async () => {
    const permission = await permit("All", link(), { resourcePartitionKey: ["a"] });
    const restricted = withToken(permission);
    assert.equal((await restricted.item("1", "a").read()).resource.id, "1");
    await refused(restricted.item("1", "b").read(), 403);
    await refused(restricted.items.create({ id: "2", pk: "b" }), 403);
  });

  test("users and permissions can be listed and deleted", async () => {
    const { resources } = await world.database.users.readAll().fetchAll();
    assert.ok(resources.some(({ id }) => id === user.id));
    const { resources: permissions } = await user.permissions.readAll().fetchAll();
    for (const { id } of permissions) await user.permission(id).delete();
    assert.equal((await user.permissions.readAll().fetchAll()).resources.length, 0);
    await user.delete();
  });
});
